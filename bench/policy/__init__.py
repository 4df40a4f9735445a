"""Measurements of the parts for policy documents."""
