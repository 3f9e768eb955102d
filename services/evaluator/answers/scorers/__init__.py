"""How answers to uploaded rows are scored: one module per kind, gathered in `choosing`."""
