"""What an answer cost, and at whose prices."""
