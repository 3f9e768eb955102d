"""Pages of a job's items: lists, one item, annotations, and several jobs' answers row by row."""
