"""Opens an uploaded file as numbered rows: its encoding and compression, and its container, which its content tells."""
