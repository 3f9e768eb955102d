"""Experiments: start them, follow them and read what they found."""
