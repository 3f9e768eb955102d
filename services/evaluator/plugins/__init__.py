"""Suites, scorers and provider kinds of installed Python packages. Each package has a separate process."""
