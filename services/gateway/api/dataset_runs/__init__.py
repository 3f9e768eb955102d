"""`/admin/benchmarks`: models over uploaded rows. Each is a job, and can also be read as one."""
