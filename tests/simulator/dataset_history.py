"""What was seen from outside of datasets while a simulation ran."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulator.history import ENDED, FAILED, PENDING, History, Place
from touchstone.v1 import dataset_pb2

GONE = "deleted"
"""A word of every reason for which a job ends whose dataset is gone."""
Attempt = tuple[str, int]
"""A job and its attempt."""


@dataclass
class Datasets:
    """Grows while the simulation runs; notes in `history.broken` what a moment tells."""

    history: History
    kept: dict[str, dataset_pb2.Dataset] = field(default_factory=dict)
    """Acknowledged uploads by dataset."""
    requests: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By request id, the datasets that answers named."""
    asked: set[str] = field(default_factory=set)
    """Datasets whose deletion was asked for."""
    open: Counter[str] = field(default_factory=Counter)
    """By dataset, deletions that were asked for and not refused: they may come true at any time."""
    deleted: set[str] = field(default_factory=set)
    """Those whose deletion was acknowledged."""
    protected: dict[Attempt, str] = field(default_factory=dict)
    """Attempts that began before their dataset, which this is, was marked for a deletion, or asked to be deleted."""

    def over(self, dataset_id: str) -> set[Attempt]:
        """Live attempts of jobs over a dataset."""
        return {
            (job_id, self.history.places[job_id][-1][1])
            for job_id in self.history.live()
            if self.history.job(job_id).spec.dataset.dataset_id == dataset_id
        }

    def uploaded(self, request_id: str, rows: int, dataset: dataset_pb2.Dataset) -> None:
        """An upload was acknowledged."""
        self.kept[dataset.dataset_id] = dataset
        self.history.rows[dataset.dataset_id] = dataset.rows
        if dataset.rows != rows:
            self.history.broken.append(f"dataset {dataset.dataset_id} has {dataset.rows} rows of {rows}")
        known = self.requests[request_id] if request_id else []
        for other in known:
            if other != dataset.dataset_id and other not in self.asked:
                self.history.broken.append(f"{request_id} made the datasets {other} and {dataset.dataset_id}")
        known.append(dataset.dataset_id)

    def ask(self, dataset_id: str) -> set[Attempt]:
        """A deletion is asked for; the attempts that it may not touch."""
        over = self.over(dataset_id)
        if not self.open[dataset_id]:
            self.protected |= dict.fromkeys(over, dataset_id)
        self.asked.add(dataset_id)
        self.open[dataset_id] += 1
        return over

    def refused(self, dataset_id: str) -> None:
        """A deletion was refused, as jobs use the dataset."""
        self.open[dataset_id] -= 1

    def acknowledged(self, dataset_id: str, before: set[Attempt]) -> None:
        """A deletion was acknowledged. `before` were live when it was asked for."""
        self.deleted.add(dataset_id)
        for job_id, _ in before & self.over(dataset_id):
            self.history.broken.append(f"dataset {dataset_id} was deleted while job {job_id} used it")

    def not_found(self, dataset_id: str) -> None:
        """A dataset was not there when its deletion was asked for."""
        if self.open[dataset_id] == 1:
            self.history.broken.append(f"dataset {dataset_id} is not found, and nobody had deleted it")

    def moved(self, job_id: str, place: Place, is_unmarked: Callable[[str], bool]) -> None:
        """Called for every stored state of a job. `is_unmarked` tells whether a dataset's manifest is there, and not
        marked."""
        state, attempt = place
        if state == PENDING and is_unmarked(over := self.history.job(job_id).spec.dataset.dataset_id):
            self.protected[job_id, attempt] = over
        if state != FAILED:
            if state in ENDED:
                self.protected.pop((job_id, attempt), None)
            return
        dataset_id = self.protected.pop((job_id, attempt), "")
        reason = self.history.job(job_id).reason
        if dataset_id and GONE in reason:
            self.history.broken.append(f"job {job_id} used dataset {dataset_id} and failed: {reason}")
