"""Judging stored answers: the rows that ask a judge, and what came of them."""
