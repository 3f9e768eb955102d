"""Items of a job that were asked again: how many answers changed, and whether more than by chance."""

from __future__ import annotations

import numpy as np

from services.errors import ConflictError
from services.results.comparison import asked_again, common_items, further_runs
from services.results.comparison.noise import flips_message, require_same
from services.results.comparison.selection import comparability, runs, subjects
from services.results.runs import job_reads
from services.results.statistics import reasking
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from services.words import noise
from touchstone.v1 import noise_pb2, results_service_pb2


def get_replay(
    connection: Connection, request: results_service_pb2.GetReplayRequest, visible: Visibility = EVERYTHING
) -> results_service_pb2.GetReplayResponse:
    """Raises ConflictError for a job other than a replay, NotFoundError for one that does not exist or was deleted, and
    before the end of the replay."""
    job = job_reads.get_job(connection, request.job_id, visible)
    replayed = job.spec.replays_job_id
    if not replayed:
        raise ConflictError(f"Job {job.job_id} is not a replay. Start one: touchstone replay {job.job_id}.")
    suite = subjects.require_jobs(connection, [replayed, job.job_id], visible)
    loaded = {run.job_id: run for run in runs.load(connection, {one: one for one in (replayed, job.job_id)})}
    then, now = loaded[replayed], loaded[job.job_id]
    require_same(comparability.compare([then, now]))
    others = [
        other
        for other in further_runs.newest(connection, suite, [then], visible)[then.configuration, then.job.item_set]
        if other.job_id != replayed and further_runs.asks_like(now, other, [*now.plans])
    ]
    members = [then, now, *others]
    compared = comparability.compare(members)
    common_items.choose(connection, compared)
    plans = [compared.plans[task][0] for task in compared.tasks]
    scores = asked_again.read(connection, members, plans, compared.weighting, copies=True)
    if not scores.tasks:
        raise ConflictError("The items of these jobs have no scores of their own, so no change can be seen.")
    made = noise_pb2.Replay(job_id=job.job_id, replayed_job_id=replayed, items=len(scores.weights))
    old, new, *further = scores.scores
    shares = reasking.differences([old], [new])
    means = new.mean(axis=0) - old.mean(axis=0)
    made.flips.CopyFrom(flips_message(reasking.flips(shares, scores.clusters)))
    made.higher, made.lower = int(np.sum(means > 0)), int(np.sum(means < 0))
    made.score_then, made.score_now = (float(one.mean(axis=0) @ scores.weights) for one in (old, new))
    # What changed between the two jobs must not count as noise: runs before the replay are taken apart from later ones.
    started = job.created_at.ToNanoseconds()
    is_later = [other.completed_at.ToNanoseconds() >= started for other in others]
    sides = [[old], []]
    for run, later in zip(further, is_later, strict=True):
        sides[later].append(run)
    measured = reasking.flips_of_reasking(sides, scores.clusters)
    beyond = reasking.excess(shares, sides, scores.clusters)
    if measured is not None and beyond is not None:
        made.measured.CopyFrom(flips_message(measured))
        made.measured_runs = sum(len(side) for side in sides if reasking.askings(side) > 1)
        made.beyond, made.beyond_low, made.beyond_high = beyond
        made.verdict = (
            noise_pb2.REPLAY_VERDICT_MORE_THAN_NOISE if beyond[1] > 0 else noise_pb2.REPLAY_VERDICT_WITHIN_NOISE
        )
    made.words.extend(noise.replay_sentences(made))
    return results_service_pb2.GetReplayResponse(replay=made)
