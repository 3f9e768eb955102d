"""What services show operators about themselves: metrics, which Prometheus reads, and logs."""
