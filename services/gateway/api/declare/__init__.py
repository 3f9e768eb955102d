"""Declarations of endpoints: what they take, how that is checked, and the OpenAPI document made from it."""
