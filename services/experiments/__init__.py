"""Experiments as data: a definition of models, prompts and scenarios, the rows that it makes, and the tips in answers.
Pure, except that the prompts, scenarios and the rubric that ship with it are read from `data`.
"""
