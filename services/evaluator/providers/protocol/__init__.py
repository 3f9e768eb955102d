"""What all providers share: requests, transport, streams, failures and usage."""
