"""How long a run would take and what it would cost, from a pilot."""
