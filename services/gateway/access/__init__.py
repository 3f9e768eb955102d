"""Who may ask, and how much: tokens, browser sessions, limits per user."""
