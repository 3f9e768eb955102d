"""Fields of requests that REST, forms and uploads share: their checks, and the same in JSON Schema."""
