"""The installation's pages: the queue with its evaluators, and the settings."""
