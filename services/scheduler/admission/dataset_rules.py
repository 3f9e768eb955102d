"""Jobs over uploaded datasets: which rows are run, and how they are scored. Pure."""

from __future__ import annotations

from collections.abc import Collection

from services import patterns
from services.errors import InvalidRequestError, NotFoundError
from services.words import refusals, scorers
from services.words.scorers import USUAL, USUAL_READINGS
from touchstone.v1 import dataset_pb2, job_pb2, scoring_pb2, suite_pb2


def missing(dataset_id: str) -> NotFoundError:
    """The error for a missing dataset."""
    return NotFoundError(refusals.not_found("Dataset", dataset_id))


def vanished(work: job_pb2.DatasetWork) -> str:
    """Why a job ends when its dataset was deleted."""
    return (
        f"Dataset {work.name or work.dataset_id} ({work.dataset_id}) was deleted before the job ended. "
        "Answers so far are kept. Upload it again and start a new job."
    )


def deleted(work: job_pb2.DatasetWork, job_id: str) -> str:
    """Why a job over a deleted dataset can neither be retried nor lend its answers."""
    return (
        f"Dataset {work.name or work.dataset_id} ({work.dataset_id}) was deleted, and job {job_id} needs its rows. "
        "Answers so far are kept. Upload the dataset again and start a new job."
    )


def check_form(work: job_pb2.DatasetWork) -> None:
    """Checks what does not need the dataset. A pattern takes up to a third of a second. Raises InvalidRequestError."""
    _check_texts(work.scoring, "spec.dataset.scoring")
    for place, scoring in enumerate(work.further[: scorers.MOST_FURTHER]):
        _check_texts(scoring, f"spec.dataset.further[{place}]")


def _check_texts(scoring: scoring_pb2.Scoring, path: str) -> None:
    if scoring.schema:
        from services import json_schemas  # Late: it takes long to import, and few jobs have a schema.

        try:
            json_schemas.compiled(scoring.schema)
        except ValueError as error:
            raise InvalidRequestError(f"The schema {error}.", f"{path}.schema") from error
    if not scoring.answer_pattern:
        return
    try:
        patterns.compiled(scoring.answer_pattern)
    except ValueError as error:
        raise InvalidRequestError(refusals.pattern(error), f"{path}.answer_pattern") from error


def fill_in(
    spec: job_pb2.JobSpec, dataset: dataset_pb2.Dataset | None, most_rows: int, plugged: Collection[str] = ()
) -> None:
    """Checks the dataset's part of a spec and completes it with facts about the dataset and the scoring.

    A limit that leaves no row out becomes 0, so that equal selections are written in the same way. `most_rows` of 0
    means any number; `plugged` are the scorers of plug-ins. Raises NotFoundError, InvalidRequestError.
    """
    work = spec.dataset
    if dataset is None:
        raise missing(work.dataset_id)
    if spec.mode == suite_pb2.MODE_LOGLIKELIHOOD:
        raise InvalidRequestError(refusals.GENERATE_ONLY, "spec.mode")
    if work.limit >= dataset.rows:
        work.limit = 0
    asked = work.limit or dataset.rows
    if 0 < most_rows < asked:
        raise InvalidRequestError(
            f"{refusals.too_large('The job', asked, most_rows, 'rows')} Set limit, or split the dataset.",
            "spec.dataset.limit",
        )
    work.name, work.digest = dataset.name, dataset.digest
    work.last_assistant = dataset.last_assistant
    work.scoring.CopyFrom(_scoring(work, dataset.scoring, plugged))
    work.ClearField("scorer")
    _fill_further(work, plugged)
    _check_reading(spec)


def scorer_of(spec: job_pb2.JobSpec, dataset: dataset_pb2.Dataset) -> str:
    """The scorer that counts: the job's, else the dataset's own."""
    work = spec.dataset
    scoring = work.scoring if work.HasField("scoring") else dataset.scoring
    return work.scorer or scoring.scorer or USUAL


def _check_reading(spec: job_pb2.JobSpec) -> None:
    """Clears a reading that the scorer has anyway, so that equal ones are written in the same way. Raises
    InvalidRequestError."""
    scoring = spec.dataset.scoring
    if spec.reading and (scoring.scorer not in USUAL_READINGS or scoring.answer_pattern):
        by = "an answer pattern" if scoring.answer_pattern else scoring.scorer
        raise InvalidRequestError(
            f"reading is only for the scorers {', '.join(USUAL_READINGS)} without an answer pattern. These rows are "
            f"scored by {by}. Leave reading out.",
            "spec.reading",
        )
    read = [one for one in (scoring, *spec.dataset.further) if not one.answer_pattern]
    if {USUAL_READINGS.get(one.scorer, spec.reading) for one in read} == {spec.reading}:
        spec.ClearField("reading")


def _fill_further(work: job_pb2.DatasetWork, plugged: Collection[str]) -> None:
    """Completes further scorers, so that equal ones are written in the same way. Raises InvalidRequestError."""
    for scoring in work.further:
        scoring.scorer = scoring.scorer or USUAL
        # The reference's place is not an option of a scorer.
        scoring.reference_field = scoring.reference_field or work.scoring.reference_field
    path, sentence = scorers.further_problem(work.scoring, work.further, plugged)
    if sentence:
        raise InvalidRequestError(sentence, f"spec.dataset.{path}")
    for scoring in work.further:
        scoring.CopyFrom(scorers.plain(scoring))
        scoring.ClearField("group_field")


def _scoring(work: job_pb2.DatasetWork, own: scoring_pb2.Scoring, plugged: Collection[str]) -> scoring_pb2.Scoring:
    chosen = scoring_pb2.Scoring()
    chosen.CopyFrom(work.scoring if work.HasField("scoring") else own)
    if work.scorer:
        # The reference's place is not an option of a scorer.
        chosen = scoring_pb2.Scoring(scorer=work.scorer, reference_field=chosen.reference_field)
    chosen.scorer = chosen.scorer or USUAL
    # Nor is it one which rows belong together.
    chosen.group_field = chosen.group_field or own.group_field
    option, sentence = scorers.problem(chosen, plugged)
    if sentence:
        field = "spec.dataset.scorer" if option == "scorer" else f"spec.dataset.scoring.{option}"
        raise InvalidRequestError(sentence, field)
    if chosen.answer_match == scoring_pb2.ANSWER_MATCH_LAST:
        # As if it was not given, so that equal scorings are written in the same way.
        chosen.ClearField("answer_match")
    return chosen
