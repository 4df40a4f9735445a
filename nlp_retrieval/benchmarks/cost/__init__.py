"""What searching costs: time, memory, calls, tokens and money."""
