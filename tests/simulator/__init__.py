"""A seeded simulation of the services: a virtual clock, a fake NATS server, and processes that crash at any step.

The services run as they are, over the real NATS client. Only what lies outside a process is replaced: time, chance,
the network, the NATS server, gRPC's wire, the disk under the results database, and the models.
"""
