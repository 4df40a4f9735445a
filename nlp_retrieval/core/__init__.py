"""The vocabulary and the machinery that all rooms share; it imports none of them."""
