"""What trackers of experiments are told of a benchmark, the same for each, and those that are no Weights & Biases."""
