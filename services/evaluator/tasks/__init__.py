"""The shipped suites, one module each."""
