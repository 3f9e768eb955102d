"""Suites, scorers and provider kinds of installed Python packages. Each package runs in a process of its own."""
