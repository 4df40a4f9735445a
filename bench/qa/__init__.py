"""Answers over what searchers find, between no passages and the gold ones."""
