"""The installation: queue, evaluators, endpoints and models, schedules, webhooks and set-aside messages."""
