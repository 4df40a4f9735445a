"""Encoders behind an endpoint: requests that are limited, retried, counted and checked, and vectors kept on disk."""
