"""Calls to users' URLs when their jobs finish: registered ones and a job's own."""
