"""The page that compares finished runs: its address, its figures, its drawings."""
