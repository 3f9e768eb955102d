"""How many questions are answered at once, in which order, and which share one answer."""
