"""Jobs as they are read, listed, marked and named."""
