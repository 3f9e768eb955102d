"""Commands on a stopped installation's state directory: restore, check, repair."""
