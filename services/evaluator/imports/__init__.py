"""Jobs over answers that another tool collected: what they come to, and which answer belongs to which item."""
