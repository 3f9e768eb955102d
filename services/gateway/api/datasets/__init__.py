"""`/admin/datasets`: rows to ask models, uploaded or read from the Hub."""
