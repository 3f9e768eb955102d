"""One module for each wire protocol that models speak."""
