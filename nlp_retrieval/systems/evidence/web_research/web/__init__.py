"""Shared parts of fetchers and search engines: addresses, guarded connections, bounded answers, folders of pages."""
