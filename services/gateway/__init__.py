"""The gateway: REST, pages and OpenAI's API in front of the services."""
