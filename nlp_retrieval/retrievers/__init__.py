"""Retrievers: engines that find items for queries, a folder each."""
