"""Words for the values of `touchstone.v1`, and the facts that several services and clients share. Pure."""
