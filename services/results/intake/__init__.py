"""From JetStream into DuckDB: item results, job events, seals, and people's marks, verdicts and names."""
