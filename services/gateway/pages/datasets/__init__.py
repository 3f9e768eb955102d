"""Pages of uploaded datasets: upload and list, one dataset with its runs."""
