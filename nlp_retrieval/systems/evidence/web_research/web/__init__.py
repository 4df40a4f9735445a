"""What fetchers and search engines share: addresses, guarded connections, bounded answers, folders that stand for the web."""
