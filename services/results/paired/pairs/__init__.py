"""Rows of compared runs, and what each row adds to a difference. Pure."""
