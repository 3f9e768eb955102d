"""The web pages: HTML with htmx, usable without it."""
