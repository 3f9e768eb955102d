"""Verbs that create jobs, change them or give them data."""
