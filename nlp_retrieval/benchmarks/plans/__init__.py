"""What a benchmark is going to do, told before it does it."""
