"""What is encoded a block at a time, here or by workers."""
