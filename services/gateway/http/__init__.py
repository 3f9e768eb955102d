"""HTTP itself: connections, middleware, static files, health, and errors as responses."""
