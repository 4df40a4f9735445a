"""Claims: evidence for and against them, from how many independent origins, and the status that follows."""
