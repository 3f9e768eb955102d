"""What REST and pages both ask the services: jobs, the catalogue, boards, rows, estimates, live states."""
