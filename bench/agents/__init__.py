"""Agents that search, measured: rules whose figures are known, and a small language model."""
