"""Measuring searchers over one corpus: configurations, shared stages, costs, and runs on disk."""
