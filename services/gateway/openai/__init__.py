"""`/v1/files`, `/v1/batches` and `/v1/models` in OpenAI's shapes, so that its clients' batch code runs against this
installation."""
