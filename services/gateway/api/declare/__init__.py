"""How an endpoint is declared: what it takes, how that is checked, and the OpenAPI document made from it."""
