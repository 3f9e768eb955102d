"""Questions over many jobs: leaderboard, comparison, overview, trends and configurations."""
