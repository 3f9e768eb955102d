"""What REST says of experiments, from the messages of the services."""

from services.experiments.documents import leaderboard

__all__ = ["leaderboard"]
