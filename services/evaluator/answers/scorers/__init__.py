"""How answers to uploaded rows are scored: one module a kind, gathered in `choosing`."""
