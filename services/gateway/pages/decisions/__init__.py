"""Pages of decisions: the list, one decision with its evidence, and the form that starts one."""
