"""What evaluators have announced: endpoints, models, suites and capacity; and where a job's units go.

Pure: the caller brings the clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from services.bus import STORED_ENDPOINT, batched_endpoint, batches_endpoint
from services.errors import InvalidRequestError, NotFoundError
from services.words import plugins, refusals
from services.words.jobs import calls_nobody
from touchstone.v1 import endpoint_pb2, evaluator_pb2, job_pb2, suite_pb2

_STATE_RANK = {
    endpoint_pb2.Endpoint.STATE_REACHABLE: 0,
    endpoint_pb2.Endpoint.STATE_LIMITED: 1,
    endpoint_pb2.Endpoint.STATE_NOT_CONFIGURED: 2,
    endpoint_pb2.Endpoint.STATE_DOWN: 3,
}

_STORED_AT_ONCE = 128
"""Stored answers that an evaluator scores at a time, counted like calls."""
_BATCHED_AT_ONCE = 100_000
"""Rows that a batch API has at a time: all of a job, of which evaluators take as many as they may."""
_FORGET_S = 7 * 24 * 3600.0
"""How long an announcement stays in the bucket."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What an endpoint can take now, over its live evaluators that take new work.

    `resident` are the models in memory there: those that its evaluators report, else the last model sent there.
    """

    calls: int
    evaluators: int
    exclusive: bool
    resident: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Loss:
    """An evaluator that ended without announcing it, by its last announcement. `restarted`: another process now has its
    name."""

    evaluator: evaluator_pb2.Evaluator
    restarted: bool


class Fleet:
    """All evaluators announced within a week."""

    def __init__(self, absent_after_s: float) -> None:
        self._absent_after_s = absent_after_s
        self._heard: dict[str, tuple[float, evaluator_pb2.Evaluator]] = {}
        self._sent: dict[str, str] = {}
        self._watched: set[str] = set()
        self._replaced: list[Loss] = []
        self._plugged: frozenset[str] = frozenset()
        """Suites of plug-ins that some evaluator has, or had."""
        self.drained: set[str] = set()
        """Evaluators that admins drain, of which some may not have heard yet."""

    def sent(self, endpoint: str, model: str) -> None:
        """Notes that work for this model went out."""
        self._sent[endpoint] = model

    def hear(self, evaluator: evaluator_pb2.Evaluator, now: float) -> bool:
        """Takes an announcement, heard at `now`; True when it changes what can be released."""
        before = self._heard.get(evaluator.evaluator)
        if evaluator.evaluator in self._watched and before is not None and _replaces(evaluator, before[1]):
            self._replaced.append(Loss(before[1], restarted=True))
        for name in [name for name, (heard, _) in self._heard.items() if now - heard > _FORGET_S]:
            del self._heard[name]
        self._heard[evaluator.evaluator] = (now, evaluator)
        self._watched.add(evaluator.evaluator)
        heard = (one for _, one in self._heard.values())
        self._plugged = frozenset(suite.suite for one in heard for suite in one.suites if suite.plugin)
        if before is None or not self._is_live(before[0], now):
            return True
        return _capacity_key(before[1]) != _capacity_key(evaluator)

    def losses(self, now: float) -> list[Loss]:
        """The losses since the last call."""
        found, self._replaced = self._replaced, []
        gone = self._watched - {evaluator.evaluator for evaluator in self.live(now)}
        self._watched -= gone
        last = [self._heard[name][1] for name in sorted(gone & self._heard.keys())]
        return found + [Loss(evaluator, restarted=False) for evaluator in last if not _leaves(evaluator)]

    def _is_live(self, heard: float, now: float) -> bool:
        return now - heard <= self._absent_after_s

    def live(self, now: float) -> list[evaluator_pb2.Evaluator]:
        return [e for heard, e in self._heard.values() if self._is_live(heard, now)]

    def evaluators(self, now: float) -> list[evaluator_pb2.Evaluator]:
        """Every evaluator by name, with `live` filled in."""
        found = []
        for _, (heard, evaluator) in sorted(self._heard.items()):
            copy = evaluator_pb2.Evaluator()
            copy.CopyFrom(evaluator)
            copy.live = self._is_live(heard, now)
            copy.drain_requested = copy.evaluator in self.drained
            found.append(copy)
        return found

    def _takes_none(self, evaluator: evaluator_pb2.Evaluator) -> bool:
        return evaluator.draining or evaluator.evaluator in self.drained

    def only_drained(self, token: str, now: float) -> bool:
        """Whether units under this token of `route` have live evaluators, all of which admins drain."""
        able = [evaluator for evaluator in self.live(now) if _serves(evaluator, token)]
        return bool(able) and all(evaluator.evaluator in self.drained for evaluator in able)

    def capacity(self, endpoint: str, now: float) -> Capacity:
        calls = evaluators = 0
        exclusive = False
        resident: set[str] = set()
        if endpoint == STORED_ENDPOINT:
            evaluators = sum(not self._takes_none(evaluator) for evaluator in self.live(now))
            return Capacity(evaluators * _STORED_AT_ONCE, evaluators, False)
        if batched := batched_endpoint(endpoint):
            evaluators = self.capacity(batched, now).evaluators
            return Capacity(evaluators * _BATCHED_AT_ONCE, evaluators, False)
        for evaluator in self.live(now):
            for e in evaluator.endpoints:
                if e.endpoint == endpoint and not self._takes_none(evaluator):
                    calls += max(1, e.concurrency)
                    evaluators += 1
                    exclusive |= e.exclusive
                    resident.add(e.resident_model or self._sent.get(endpoint, ""))
        return Capacity(calls, evaluators, exclusive, frozenset(resident - {""}))

    def endpoints(self, now: float) -> list[endpoint_pb2.Endpoint]:
        """Every endpoint by name, merged over evaluators; without a live evaluator its state is ABSENT."""
        return [self._merge(name, now) for name in sorted({e.endpoint for e in self._announced()})]

    def endpoint(self, name: str, now: float) -> endpoint_pb2.Endpoint:
        """Raises NotFoundError for one that was never announced."""
        known = {e.endpoint for e in self._announced()}
        if name not in known:
            raise NotFoundError(f"{refusals.not_found('Endpoint', name)}. {_choices('Endpoints', known)}")
        return self._merge(name, now)

    def _announced(self) -> Iterable[endpoint_pb2.Endpoint]:
        for _, evaluator in sorted(self._heard.values(), key=lambda heard: -heard[0]):
            yield from evaluator.endpoints

    def _merge(self, name: str, now: float) -> endpoint_pb2.Endpoint:
        merged = endpoint_pb2.Endpoint()
        live = [e for evaluator in self.live(now) for e in evaluator.endpoints if e.endpoint == name]
        if live:
            # The best state wins: a job runs where the endpoint can be reached.
            merged.CopyFrom(min(live, key=lambda e: (_STATE_RANK.get(e.state, 9), -len(e.models))))
            merged.slots_total = sum(e.concurrency for e in live)
            merged.slots_busy = sum(e.slots_busy for e in live)
            return merged
        merged.CopyFrom(next(e for e in self._announced() if e.endpoint == name))
        merged.state = endpoint_pb2.Endpoint.STATE_ABSENT
        merged.detail = "No evaluator that serves it is running."
        merged.slots_total = merged.slots_busy = 0
        return merged

    def suites(self, now: float) -> list[suite_pb2.Suite]:
        """Suites that some evaluator can read; live evaluators take precedence over absent ones, newer ones over
        older."""
        found: dict[str, suite_pb2.Suite] = {}
        for _, evaluator in self._by_news(now):
            for suite in evaluator.suites:
                found.setdefault(suite.suite, suite)
        return list(found.values())

    def _by_news(self, now: float) -> list[tuple[float, evaluator_pb2.Evaluator]]:
        return sorted(self._heard.values(), key=lambda h: (self._is_live(h[0], now), h[0]), reverse=True)

    def suite(self, name: str, now: float) -> suite_pb2.Suite:
        """Raises InvalidRequestError for one that no evaluator can read, and for one of a plug-in that none can now."""
        known = {suite.suite: suite for suite in self.suites(now)}
        if name not in known:
            raise InvalidRequestError(
                f"{refusals.not_found('Suite', name)}. {_choices('Suites', known)}", "spec.suite.suite"
            )
        suite = known[name]
        if suite.plugin and not self._has(plugins.SUITE, name, now):
            raise InvalidRequestError(plugins.not_running(plugins.SUITE, name, suite.plugin), "spec.suite.suite")
        return suite

    def scorers(self, now: float) -> Collection[str]:
        """Those of plug-ins that live evaluators have."""
        return plugins.scorers(self.live(now))

    def require_one_plugin(self, spec: job_pb2.JobSpec, now: float) -> None:
        """Raises InvalidRequestError for a job whose scorers belong to several plug-ins."""
        what, names = plugins.parts_of(spec)
        if len(names) > 1 and not plugins.owners(self.live(now), what, names):
            raise InvalidRequestError(plugins.of_several(names), "spec.dataset.further")

    def require_scorer(self, name: str, now: float) -> None:
        """Raises InvalidRequestError for one of a plug-in that only absent evaluators have."""
        known = plugins.usable((evaluator for _, evaluator in self._by_news(now)), plugins.SCORER)
        owner = next((plugin for plugin, part in known if part.name == name), "")
        if owner and not self._has(plugins.SCORER, name, now):
            raise InvalidRequestError(plugins.not_running(plugins.SCORER, name, owner), "spec.dataset.scorer")

    def lacking(self, job: job_pb2.Job, now: float) -> str:
        """What a live job needs of a plug-in and no evaluator of its endpoint has, as in "the plug-in example 1.0".

        Empty if one has it, and if there is no such evaluator at all. A running job needs the version that planned it.
        """
        planned: set[str] = set()
        if job.state == job_pb2.Job.STATE_RUNNING:
            planned = {plan.plugin for plan in job.plan} - {""}
            if not planned:
                return ""
        what, names = plugins.parts_of(job.spec)
        if not planned and (not names or (what == plugins.SUITE and names[0] not in self._plugged)):
            return ""
        token = route(job.spec)
        able = [one for one in self.live(now) if _serves(one, token) and not self._takes_none(one)]
        found = plugins.owners(able, what, names)
        if not able or (planned <= found if planned else found):
            return ""
        it = f"the {what} {' and '.join(map(refusals.shown, names))} of a plug-in"
        return f"the plug-in {min(planned - found)}" if planned else it

    def _has(self, what: str, name: str, now: float) -> bool:
        return any(part.name == name for _, part in plugins.usable(self.live(now), what))


def _replaces(evaluator: evaluator_pb2.Evaluator, before: evaluator_pb2.Evaluator) -> bool:
    return not _leaves(before) and before.started_at != evaluator.started_at


def _leaves(evaluator: evaluator_pb2.Evaluator) -> bool:
    """Whether it has said that its process ends."""
    return evaluator.draining and not evaluator.drain_requested


def _serves(evaluator: evaluator_pb2.Evaluator, token: str) -> bool:
    """Whether units under this token of `route` can run there."""
    served = {endpoint.endpoint for endpoint in evaluator.endpoints}
    return token == STORED_ENDPOINT or (batched_endpoint(token) or token) in served


def _capacity_key(evaluator: evaluator_pb2.Evaluator) -> tuple[object, ...]:
    endpoints = ((e.endpoint, e.concurrency, e.exclusive, e.resident_model) for e in evaluator.endpoints)
    packages = (plugin.SerializeToString(deterministic=True) for plugin in evaluator.plugins)
    return (evaluator.draining, *endpoints, *packages)


def _choices(what: str, names: Iterable[str]) -> str:
    listed = ", ".join(sorted(names))
    return f"{what}: {listed}." if listed else "No evaluator has announced itself yet. Start one."


def route(spec: job_pb2.JobSpec) -> str:
    """The endpoint token under which units are released: units without calls run on any evaluator, and units for a
    batch API wait separately from the endpoint's calls."""
    if calls_nobody(spec):
        return STORED_ENDPOINT
    return batches_endpoint(spec.endpoint) if spec.provider_batch else spec.endpoint
