"""Verifiers, which judge whether a passage supports a claim, contradicts it, or does neither."""
