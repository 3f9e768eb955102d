"""What a judge that compared two jobs' answers prefers, as JSON."""

from __future__ import annotations

from typing import Any

from services.experiments.documents import agreed, figure_of
from services.gateway.api.answers import members
from services.gateway.api.answers.metrics import FIGURE
from services.gateway.fields.schema import COUNT, Schema, about, null, shape
from touchstone.v1 import results_service_pb2

_PREFERENCE: Schema = shape(
    {
        "preferred": about(
            FIGURE,
            "The share of pairs in which the judged job's answer is preferred. Equal pairs count half; 0.5 means that "
            "the judge prefers neither job.",
        ),
        "better": about(COUNT, "Pairs in which the judged job's answer is preferred."),
        "equal": about(COUNT, "Pairs in which neither is, or each is in one order."),
        "worse": about(COUNT, "Pairs in which the other job's answer is preferred."),
        "same_in_both_orders": about(
            null(FIGURE), "The share of pairs in which the judge says the same in both orders. null for the composite."
        ),
        "first_preferred": about(
            null(FIGURE),
            "Of its preferences, the share for the answer that stands first; 0.5 without a bias. null for the "
            "composite, and without a preference.",
        ),
    },
    name="JudgedPreference",
)
PAIRS: Schema = shape(
    {
        "against": about(members.JOB_ID, "The other job."),
        "pairs": about(COUNT, "Pairs that the judge could be read of in both orders. No others count."),
        "equal_pairs": about(COUNT, "Pairs of equal answers, about which it was not asked."),
        "preferences": about(
            {"type": "object", "additionalProperties": _PREFERENCE},
            "By criterion; the composite comes first where there are several.",
        ),
        "people": about(
            null(
                shape(
                    {
                        "pairs": about(COUNT, "Pairs with the judge's preference and people's."),
                        "accuracy": about(FIGURE, "The share of them on which they agree."),
                        "kappa": about(
                            null(FIGURE), "Cohen's kappa. null where both always preferred one and the same."
                        ),
                    },
                    name="PreferenceAgreement",
                )
            ),
            "The judge against people's preferences in the side-by-side view. null where no pair has both.",
        ),
    },
    name="JudgedPairs",
)


def pairs_body(run: results_service_pb2.JudgeRun) -> dict[str, Any]:
    found, judging = run.pairs, run.job.spec.judging
    return {
        "against": judging.against_job_id,
        "pairs": found.pairs,
        "equal_pairs": judging.equal_pairs,
        "preferences": {one.metric: _preference(one) for one in found.preferences},
        "people": agreed(found.people, "pairs") if found.HasField("people") else None,
    }


def _preference(found: results_service_pb2.JudgedPreference) -> dict[str, Any]:
    figures = {name: figure_of(found, name) for name in ("preferred", "same_in_both_orders", "first_preferred")}
    return figures | {"better": found.better, "equal": found.equal, "worse": found.worse}
