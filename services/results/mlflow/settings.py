"""Which MLflow server gets what."""

from __future__ import annotations

from dataclasses import dataclass, field

from services import environment

EXPERIMENTS, ALL = "experiments", "all"


@dataclass(frozen=True, slots=True)
class MlflowSettings:
    """`url` is that of the server, with user and password where it asks for them; "" for none. `host` is sent as
    the name of the server in place of that in `url`, "" for none. `runs` is "experiments", or "all" if jobs of suites
    and datasets are sent, too."""

    url: str = field(default="", repr=False)
    host: str = ""
    token: str = field(default="", repr=False)
    runs: str = EXPERIMENTS

    @classmethod
    def from_env(cls) -> MlflowSettings:
        """Raises InvalidRequestError for an invalid value."""
        return cls(
            url=environment.url("TOUCHSTONE_MLFLOW_URL", "", ("http", "https")).rstrip("/"),
            host=environment.text("TOUCHSTONE_MLFLOW_HOST"),
            token=environment.text("TOUCHSTONE_MLFLOW_TOKEN"),
            runs=environment.choice("TOUCHSTONE_MLFLOW_RUNS", EXPERIMENTS, (EXPERIMENTS, ALL)),
        )
