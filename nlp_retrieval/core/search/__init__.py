"""A search: the interfaces of its stages, and the Searcher that composes them."""
