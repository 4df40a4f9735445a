"""Verifiers: whether a passage supports a claim, contradicts it, or does neither."""
