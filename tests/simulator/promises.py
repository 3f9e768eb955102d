"""What is still owed: calls of webhooks that nobody has heard, schedules whose time has come and that made no job."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.simulator.history import CANCELLED, COMPLETED, FAILED, History, name
from tests.simulator.jetstream import FakeServer
from tests.simulator.processes import TRIES
from tests.simulator.receivers import Receivers, Told
from tests.simulator.streams import Stored
from touchstone.v1 import job_record_pb2, schedule_pb2, webhook_pb2

_SLACK_S = 5.0
_MINUTE_S = 60
_ENDS = (COMPLETED, FAILED, CANCELLED)


@dataclass(frozen=True)
class Promises:
    """Reads what is stored and what was heard. `now` is the clock on the wall, in seconds since 1970."""

    history: History
    nats: FakeServer
    receivers: Receivers

    def _bucket(self, bucket: str, key: str) -> Iterator[Stored]:
        stream = self.nats.streams.get(f"KV_{bucket}")
        begins = f"$KV.{bucket}.{key}"
        for subject in stream.by_subject if stream is not None else ():
            if subject.startswith(begins):
                newest = stream.last_matching(subject)  # type: ignore[union-attr]
                if newest is not None and "KV-Operation" not in newest.headers:
                    yield newest

    # -- webhooks --------------------------------------------------------------------------------------------------

    def deliveries(self) -> Iterator[str]:
        """Every end of a job with a webhook was heard once at least, or given up after its tries."""
        told: dict[Told, set[str]] = defaultdict(set)
        for key, heard in self.receivers.heard.items():
            told[key] |= heard
        for message in self._bucket("DELIVERIES", ""):
            left = webhook_pb2.Delivery.FromString(message.data)
            if left.HasField("next_try_at"):
                yield f"delivery {left.delivery_id} about job {left.job_id} waits"
            elif "410" not in left.problem and left.tries != TRIES:
                yield f"delivery {left.delivery_id} was given up after {left.tries} tries: {left.problem}"
            elif self.receivers.calls[left.delivery_id] < left.tries:
                yield f"delivery {left.delivery_id} tells of {left.tries} tries and made fewer"
            told[left.job_id, left.event.removeprefix("job.")].add(left.delivery_id)
        for job_id, places in self.history.places.items():
            url = self.history.job(job_id).spec.webhook_url
            ends = Counter(name(state) for state, _ in places)
            for state in map(name, _ENDS):
                expected = ends[state] if url else 0
                if len(told[job_id, state]) != expected:
                    yield f"{len(told[job_id, state])} calls tell that job {job_id} is {state}, and {expected} are due"

    # -- schedules -------------------------------------------------------------------------------------------------

    def schedules(self, now: float) -> Iterator[str]:
        """Each acknowledged schedule is there and comes due; each of its jobs is of a time that has come."""
        stored = {
            schedule.schedule_id: schedule
            for schedule in (
                schedule_pb2.Schedule.FromString(message.data) for message in self._bucket("JOBS", "schedule.")
            )
        }
        made = list(self._of_schedules())
        for schedule_id, (created, deleted) in self.history.schedules.items():
            schedule = stored.get(schedule_id)
            if schedule is None:
                if deleted is None:
                    yield f"the acknowledged schedule {schedule_id} is not there"
                continue
            if deleted:
                yield f"schedule {schedule_id} is there, and its deletion was acknowledged"
            if not schedule.HasField("next_at") or schedule.next_at.ToSeconds() + _SLACK_S < now:
                yield f"schedule {schedule_id} does not come due: {schedule.last_problem or schedule.next_at}"
            first = (int(created) // _MINUTE_S + 1) * _MINUTE_S
            if first + _SLACK_S < now and not (schedule.last_problem or any(each == schedule_id for each, _ in made)):
                yield f"schedule {schedule_id} came due and made no job"
        for schedule_id, moment in made:
            if moment % _MINUTE_S or not self.history.earliest < moment <= max(self.history.latest, now):
                yield f"schedule {schedule_id} made a job of {moment}, which is no time of it"

    def _of_schedules(self) -> Iterator[tuple[str, int]]:
        """Of each job of a schedule, the schedule and the time."""
        for record in self.history.records.values():
            word, _, rest = job_record_pb2.JobRecord.FromString(record).request_id.partition(" ")
            if word == "schedule":
                schedule_id, _, moment = rest.partition(" ")
                yield schedule_id, int(moment)
