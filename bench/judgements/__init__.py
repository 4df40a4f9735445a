"""Estimates from judgements, measured where the gold is known: ``python -m bench.judgements DATA`` writes the page."""
