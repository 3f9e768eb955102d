"""From JetStream into DuckDB: item results, job events, seals and what people say."""
