"""Searchers that are programs, and what is fitted on judged queries."""
