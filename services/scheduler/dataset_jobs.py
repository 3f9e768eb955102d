"""Jobs over uploaded datasets: what of one is asked, and how it is scored. Pure."""

from __future__ import annotations

import math

from services import patterns
from services.errors import InvalidRequestError, NotFoundError
from touchstone.v1 import dataset_pb2, job_pb2, scoring_pb2, suite_pb2

SCORERS = ("exact_match", "contains", "regex", "choice", "numeric", "token_f1", "rouge_l", "json")
_USUAL_READINGS = {
    "exact_match": scoring_pb2.READING_MARKED,
    "choice": scoring_pb2.READING_LENIENT,
    "numeric": scoring_pb2.READING_LENIENT,
}
"""Of scorers that look for the answer in a response: the layers that they take unless a job says otherwise."""
_MOST_NAMES = 100
_MOST_NAME = 500


def missing(dataset_id: str) -> NotFoundError:
    """The error of a dataset that is not there."""
    return NotFoundError(f"There is no dataset {dataset_id[:80]!r}. Upload it, or choose another one.")


def vanished(work: job_pb2.DatasetWork) -> str:
    """Why a job ends whose dataset is gone."""
    return (
        f"Dataset {work.name or work.dataset_id} ({work.dataset_id}) was deleted before the job was done. What was "
        "answered is kept. Upload it again and start a new job."
    )


def deleted(work: job_pb2.DatasetWork, job_id: str) -> str:
    """Why a job over a dataset that is gone can neither be retried nor lend its answers."""
    return (
        f"Dataset {work.name or work.dataset_id} ({work.dataset_id}) was deleted, and job {job_id} needs its rows. "
        "What was answered is kept. Upload the dataset again and start a new job."
    )


def check_form(work: job_pb2.DatasetWork) -> None:
    """What can be told without the dataset. A pattern takes up to a third of a second. Raises InvalidRequestError."""
    if not work.scoring.answer_pattern:
        return
    try:
        patterns.compiled(work.scoring.answer_pattern)
    except ValueError as error:
        raise InvalidRequestError(
            f"The answer pattern {error}. Correct it, or leave it out.", "spec.dataset.scoring.answer_pattern"
        ) from error


def fill_in(spec: job_pb2.JobSpec, dataset: dataset_pb2.Dataset | None, most_rows: int) -> None:
    """Checks the dataset's part of a spec and completes it: what is told of the dataset, and the scoring that counts.

    A limit that leaves no row out becomes 0, so that equal selections read alike. `most_rows` of 0 means any number.
    Raises NotFoundError, InvalidRequestError.
    """
    work = spec.dataset
    if dataset is None:
        raise missing(work.dataset_id)
    if spec.mode == suite_pb2.MODE_LOGLIKELIHOOD:
        raise InvalidRequestError("Rows of a dataset have no choices to weigh. Choose mode generate.", "spec.mode")
    if work.limit < 0:
        raise InvalidRequestError("limit may be 0 (all rows) or more.", "spec.dataset.limit")
    if work.limit >= dataset.rows:
        work.limit = 0
    asked = work.limit or dataset.rows
    if 0 < most_rows < asked:
        raise InvalidRequestError(
            f"The job would ask {asked:,} of the {dataset.rows:,} rows of {dataset.name}; a job may ask {most_rows:,}. "
            "Set limit, or split the dataset.",
            "spec.dataset.limit",
        )
    work.name, work.digest = dataset.name, dataset.digest
    work.last_assistant = dataset.last_assistant
    work.scoring.CopyFrom(_scoring(work, dataset.scoring))
    work.ClearField("scorer")
    _check_reading(spec)


def _check_reading(spec: job_pb2.JobSpec) -> None:
    """Clears a reading that the scorer has anyway, so that equal ones read alike. Raises InvalidRequestError."""
    scoring = spec.dataset.scoring
    if spec.reading and (scoring.scorer not in _USUAL_READINGS or scoring.answer_pattern):
        by = "an answer pattern" if scoring.answer_pattern else scoring.scorer
        raise InvalidRequestError(
            f"reading is for the scorers {', '.join(_USUAL_READINGS)} without an answer pattern; these rows are scored "
            f"by {by}. Leave reading out.",
            "spec.reading",
        )
    if spec.reading == _USUAL_READINGS.get(scoring.scorer):
        spec.ClearField("reading")


def _scoring(work: job_pb2.DatasetWork, own: scoring_pb2.Scoring) -> scoring_pb2.Scoring:
    chosen = scoring_pb2.Scoring()
    chosen.CopyFrom(work.scoring if work.HasField("scoring") else own)
    if work.scorer:
        # Where the reference stands is no option of a scorer.
        chosen = scoring_pb2.Scoring(scorer=work.scorer, reference_field=chosen.reference_field)
    chosen.scorer = chosen.scorer or SCORERS[0]
    if chosen.scorer not in SCORERS:
        raise InvalidRequestError(
            f"There is no scorer {chosen.scorer[:80]!r}. Scorers: {', '.join(SCORERS)}.", "spec.dataset.scorer"
        )
    if not (math.isfinite(chosen.tolerance) and chosen.tolerance >= 0):
        raise InvalidRequestError("tolerance may be 0 or more.", "spec.dataset.scoring.tolerance")
    if chosen.answer_match not in scoring_pb2.AnswerMatch.values():
        raise InvalidRequestError("answer_match may be last or first.", "spec.dataset.scoring.answer_match")
    if chosen.answer_match == scoring_pb2.ANSWER_MATCH_FIRST and not chosen.answer_pattern:
        raise InvalidRequestError(
            "answer_match says which match of an answer pattern counts. Give answer_pattern, or leave it out.",
            "spec.dataset.scoring.answer_match",
        )
    if chosen.answer_match == scoring_pb2.ANSWER_MATCH_LAST:
        # As when nothing is said, so that equal scorings read alike.
        chosen.ClearField("answer_match")
    for field, names in (("choices", chosen.choices), ("fields", chosen.fields)):
        if len(names) > _MOST_NAMES or not all(0 < len(name) <= _MOST_NAME for name in names):
            raise InvalidRequestError(
                f"{field} may have {_MOST_NAMES} entries of 1 to {_MOST_NAME} characters.",
                f"spec.dataset.scoring.{field}",
            )
    return chosen
