"""What `make bench` runs: Touchstone beside a bare loop and beside its peers, on one machine, in one run."""
