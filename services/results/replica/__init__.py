"""A copy of the database, from which a separate process answers reads while the results service is away."""
