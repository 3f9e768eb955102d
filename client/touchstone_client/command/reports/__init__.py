"""What is printed about running and finished jobs."""
