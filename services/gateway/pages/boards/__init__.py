"""The leaderboard page: rows, item sets, task columns."""
