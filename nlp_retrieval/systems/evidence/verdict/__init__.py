"""What sources do to claims, and the verdict that follows."""
