"""Touchstone's four services. They share the modules and packages next to them, and never import each other."""

__version__ = "0.2.0"
