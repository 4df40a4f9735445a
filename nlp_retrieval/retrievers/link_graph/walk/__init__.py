"""Random walks along links, and the evidence they give for a passage."""
