"""Random walks along links, and what they say of a passage."""
