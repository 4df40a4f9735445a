"""Measuring searchers: evaluation, sweeps, reports, run files, Weights & Biases."""
