"""Servers that speak OpenAI's protocol: chat, log-likelihoods and errors."""
