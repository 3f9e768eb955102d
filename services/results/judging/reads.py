"""The judges of a job, and what they found."""

from __future__ import annotations

from typing import Any

from services.errors import InvalidRequestError
from services.results.judging import pairs, people
from services.results.runs import job_reads
from services.results.storage import archived_items
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from services.words import refusals, rubrics
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb

MOST_JUDGES = 100
_MOST_RESPONSE = 64 * 1024


def list_judges(
    connection: Connection, request: pb.ListJudgesRequest, visible: Visibility = EVERYTHING
) -> pb.ListJudgesResponse:
    """Raises InvalidRequestError for a negative item or repeat, NotFoundError for a judged job that does not exist or
    is not visible. Judges that are not visible are left out."""
    for field in ("item", "repeat"):
        if getattr(request, field) < 0:
            raise InvalidRequestError(refusals.at_least(field, 0), field)
    job_reads.get_job(connection, request.job_id, visible)
    rows = connection.execute(
        "SELECT j.job FROM jobs j JOIN datasets d ON d.id = j.suite WHERE d.judged_job = $job_id "
        "AND ($visible_owner = '' OR j.owner = $visible_owner) ORDER BY j.created_at DESC, j.job_id DESC LIMIT $most",
        {"job_id": request.job_id, "most": MOST_JUDGES, **visible.parameters},
    ).fetchall()
    found = pb.ListJudgesResponse(
        people=people.among_people(connection, request.job_id), outside=people.outside(connection, request.job_id)
    )
    for (blob,) in rows:
        job = job_pb2.Job.FromString(blob)
        run = found.judges.add(job=job, rubric=rubrics.parse(job.spec.dataset.scoring.rubric))
        result = job_reads.get_job_result(connection, job.job_id)
        if result.tasks:
            run.result.CopyFrom(result.tasks[0])
        if job.spec.judging.against_job_id:
            run.pairs.CopyFrom(pairs.judged_pairs(connection, job.job_id, job.spec.judging, run.rubric))
        else:
            _set_agreement(connection, request.job_id, run)
        if request.task:
            run.judgements.extend(_judgements(connection, job, request))
    return found


def _set_agreement(connection: Connection, judged: str, run: pb.JudgeRun) -> None:
    """How a judge of single answers agrees with people."""
    run.agreement.extend(people.agreements(connection, judged, run.job.job_id, run.rubric))
    verdicts = people.verdicts(connection, judged, run.job.job_id, run.rubric)
    if verdicts is not None:
        run.verdicts.CopyFrom(verdicts)


def _judgements(connection: Connection, judge: job_pb2.Job, request: pb.ListJudgesRequest) -> list[pb.Judgement]:
    archived_items.require(connection, judge.job_id)
    place = f"{request.task}/{request.item}/{request.repeat}"
    where: dict[str, Any] = {"judge": judge.job_id, "place": place, "further": f"{place}#", "most": _MOST_RESPONSE}
    rows = connection.execute(
        "SELECT custom_id, outcome, prediction, left(response, $most) FROM items WHERE job_id = $judge "
        "AND (custom_id = $place OR starts_with(custom_id, $further)) ORDER BY item",
        where,
    ).fetchall()
    compares = bool(judge.spec.judging.against_job_id)
    found = []
    for custom_id, outcome, scores, text in rows:
        number = int(custom_id.removeprefix(place)[1:] or 1)
        other_first = compares and number % 2 == 0
        found.append(
            pb.Judgement(number=number, outcome=outcome, scores=scores, response=text, other_first=other_first)
        )
    return found
