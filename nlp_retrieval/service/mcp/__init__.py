"""The Model Context Protocol: what is served, as tools of a language model's client."""
