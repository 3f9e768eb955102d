"""Which task of lm_eval each of ours is compared with, and why the others are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from services.evaluator.suites import shipped
from services.evaluator.tasks.kinds.definition import Definition
from tests.suite_rows import Row
from touchstone.v1 import suite_pb2


@dataclass(frozen=True, slots=True)
class Pair:
    """`lm_eval` is its task's name. `belongs` says which rows of the files that task is given, `converted` in what
    shape, where it reads another copy of the data."""

    lm_eval: str
    belongs: Callable[[Row], bool] = lambda row: True
    converted: Callable[[Row], Row] = lambda row: row


def _medqa(row: Row) -> Row:
    endings = {f"ending{place}": row["options"][letter] for place, letter in enumerate("ABCD")}
    return {"sent1": row["question"], "sent2": "", **endings, "label": "ABCD".index(row["answer_idx"])}


def _subject(name: str) -> Callable[[Row], bool]:
    return lambda row: bool(row["category"] == name)


_MMLU = (
    *("abstract_algebra", "anatomy", "astronomy", "business_ethics", "clinical_knowledge", "college_biology"),
    *("college_chemistry", "college_computer_science", "college_mathematics", "college_medicine", "college_physics"),
    *("computer_security", "conceptual_physics", "econometrics", "electrical_engineering", "elementary_mathematics"),
    *("formal_logic", "global_facts", "high_school_biology", "high_school_chemistry", "high_school_computer_science"),
    *("high_school_european_history", "high_school_geography", "high_school_government_and_politics"),
    *("high_school_macroeconomics", "high_school_mathematics", "high_school_microeconomics", "high_school_physics"),
    *("high_school_psychology", "high_school_statistics", "high_school_us_history", "high_school_world_history"),
    *("human_aging", "human_sexuality", "international_law", "jurisprudence", "logical_fallacies", "machine_learning"),
    *("management", "marketing", "medical_genetics", "miscellaneous", "moral_disputes", "moral_scenarios", "nutrition"),
    *("philosophy", "prehistory", "professional_accounting", "professional_law", "professional_medicine"),
    *("professional_psychology", "public_relations", "security_studies", "sociology", "us_foreign_policy"),
    *("virology", "world_religions"),
)
_MEDICAL = (
    *("anatomy", "clinical_knowledge", "college_biology", "college_medicine", "medical_genetics"),
    "professional_medicine",
)
_MMLU_PRO = (
    *("biology", "business", "chemistry", "computer science", "economics", "engineering", "health", "history", "law"),
    *("math", "other", "philosophy", "physics", "psychology"),
)

COMPARED: Mapping[str, Pair] = {
    "glue/cola": Pair("cola"),
    "glue/sst2": Pair("sst2"),
    "glue/mrpc": Pair("mrpc"),
    "glue/qqp": Pair("qqp"),
    "glue/mnli": Pair("mnli"),
    "glue/mnli_mismatched": Pair("mnli_mismatch"),
    "glue/qnli": Pair("qnli"),
    "glue/rte": Pair("rte"),
    "glue/wnli": Pair("wnli"),
    "superglue/boolq": Pair("boolq"),
    "superglue/cb": Pair("cb"),
    "superglue/copa": Pair("copa"),
    "superglue/rte": Pair("sglue_rte"),
    "superglue/wic": Pair("wic"),
    "superglue/wsc": Pair("wsc"),
    **{f"mmlu/{subject}": Pair(f"mmlu_{subject}") for subject in _MMLU},
    "medical/medqa": Pair("medqa_4options", converted=_medqa),
    "medical/medmcqa": Pair("medmcqa"),
    **{f"medical/{subject}": Pair(f"mmlu_{subject}") for subject in _MEDICAL},
    "arc/easy": Pair("arc_easy"),
    "arc/challenge": Pair("arc_challenge"),
    "hellaswag/hellaswag": Pair("hellaswag"),
    **{f"mmlu_pro/{name.replace(' ', '_')}": Pair("leaderboard_mmlu_pro", _subject(name)) for name in _MMLU_PRO},
}

_OURS = "our own data"
NOT_COMPARED: Mapping[str, str] = {
    **{f"demo/{task}": _OURS for task in ("sentiment", "acceptability", "paraphrase", "entailment")},
    "superglue/multirc": "lm_eval's label 1 selects “no”",
    "superglue/record": "lm_eval's task imports a module that transformers no longer has",
    "superglue/axb": "lm_eval has no such task",
    "superglue/axg": "lm_eval has no such task",
    "medical/pubmedqa": "lm_eval's data set is a script, which no longer loads",
}
"""Tasks that run in log-likelihood mode, and why lm_eval says nothing on them."""


def all_definitions() -> Mapping[str, Definition]:
    """Every shipped task."""
    return {
        f"{suite.name}/{definition.task}": definition
        for suite in shipped().values()
        for definition in suite.definitions
    }


def scored_by_loglikelihood() -> set[str]:
    """Every shipped task that runs in log-likelihood mode."""
    mode = suite_pb2.MODE_LOGLIKELIHOOD
    return {name for name, definition in all_definitions().items() if mode in definition.modes}
