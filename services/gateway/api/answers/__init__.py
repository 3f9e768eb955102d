"""What answers about jobs hold: their fields, metrics and prices, with their schemas."""
