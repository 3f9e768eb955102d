"""Tasks of an installed lm_eval."""
