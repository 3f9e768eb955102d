"""Units of work, from delivery to acknowledgement."""
