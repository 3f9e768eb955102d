"""What is done to a stopped installation's state directory: restore, check, repair."""
