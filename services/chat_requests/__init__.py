"""Requests to chat models in OpenAI's form: their messages and fields, read and checked, as rows hold them. Pure."""
