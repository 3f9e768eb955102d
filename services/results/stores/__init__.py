"""Where archives and backups are kept: a folder, or a bucket of an S3-compatible store."""
