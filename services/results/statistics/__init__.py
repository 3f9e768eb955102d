"""Values, intervals and resamples of metrics. Pure."""
