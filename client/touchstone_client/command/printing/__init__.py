"""How figures, cells and tables are printed."""
