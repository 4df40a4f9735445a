"""How fast what passages say is extracted and stored."""
