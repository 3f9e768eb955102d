FROM current_scores WHERE suite = $suite AND mode = $mode
