"""How numbers and units of measure are written."""
