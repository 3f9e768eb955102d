"""Rows of datasets through providers' own batch APIs: sent once, waited for, read back by their positions."""
