"""What each endpoint offers now, and the identity of an answer."""
