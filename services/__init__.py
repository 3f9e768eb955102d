"""Touchstone's four services. They share `errors`, `patterns`, `rpc` and `bus`, and never import each other."""

__version__ = "0.1.0"
