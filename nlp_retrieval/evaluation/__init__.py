"""What rankings are worth: measures, comparisons, and whether a difference is more than chance."""
