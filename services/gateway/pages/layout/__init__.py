"""The frame of every page, and the separate pages for signing in and for failures."""
