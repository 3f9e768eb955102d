"""Configured ways to reach models."""
