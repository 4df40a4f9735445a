"""What a benchmark found, shown: one page, the terminal, tables for papers, Weights & Biases."""
