"""Jobs over answers that another tool collected: their tasks, and which answer belongs to which item."""
