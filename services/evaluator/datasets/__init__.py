"""Jobs over uploaded datasets: their rows, the parameters of each, and their tasks."""
