"""Uploaded datasets: reading, storing, listing, deleting."""
