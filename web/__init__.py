"""Templates and static files of the web pages."""
