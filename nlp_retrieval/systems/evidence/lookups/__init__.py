"""What can be looked up between a claim and a source without a model."""
