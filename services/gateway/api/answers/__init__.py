"""Answers about jobs: their fields, metrics and prices, with their schemas."""
