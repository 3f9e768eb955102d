"""Pages of experiments: the list, what one found, and the form that starts one."""
