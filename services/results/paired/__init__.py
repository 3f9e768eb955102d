"""The statistics of paired differences, with corrections for many hypotheses. Pure."""
