"""What of a claim a passage can be checked for without a model: numbers, names, negation, words."""
