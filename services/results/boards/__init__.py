"""Questions over many runs: leaderboard, overview and trends."""
