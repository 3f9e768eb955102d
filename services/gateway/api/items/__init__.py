"""Items of jobs: lists, one item, annotations, and several jobs' answers row by row."""
