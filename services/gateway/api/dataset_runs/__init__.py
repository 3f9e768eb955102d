"""`/admin/benchmarks`: models over uploaded rows. Each is a job, and can be read as one, too."""
