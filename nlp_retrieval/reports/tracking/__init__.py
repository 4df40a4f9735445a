"""Logging of benchmarks to experiment trackers: the shared content, and all trackers except Weights & Biases."""
