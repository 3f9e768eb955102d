"""Calls of the services that REST and pages share: jobs, the catalogue, boards, rows, estimates, live states."""
