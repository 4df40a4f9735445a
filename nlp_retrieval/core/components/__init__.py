"""What every component has in common: parameters, names, code, building from plain values, and what a manifest may ask for."""
