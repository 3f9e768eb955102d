"""How numbers are written, in digits and in words."""
