"""Opens an uploaded file as numbered rows: its encoding and compression, and what holds the rows."""
