"""Jobs over uploaded datasets: their rows, what they are asked with, and what they come to."""
