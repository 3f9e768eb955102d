"""A small language model, trained on the spot on the evaluator's own prompts and served by a real server."""
