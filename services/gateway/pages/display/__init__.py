"""Values as pages show them: numbers, times, intervals, charts, colours and names."""
