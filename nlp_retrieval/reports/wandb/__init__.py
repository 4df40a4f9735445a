"""Results as Weights & Biases runs."""
