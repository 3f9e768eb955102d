"""MMLU (Hendrycks et al. 2021): 57 subjects of multiple-choice questions from exams, with five examples each.

The categories are the authors' (lm_eval counts anatomy as STEM instead). Context and continuations of log-likelihood
mode are those of lm_eval 0.4.13.
"""

from __future__ import annotations

from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import ACCURACY
from services.evaluator.tasks.kinds.definition import Row
from services.evaluator.tasks.kinds.multiple_choice import MultipleChoice
from touchstone.v1.suite_pb2 import Weighting

SUITE = "mmlu"
TITLE = "MMLU"
DESCRIPTION = "Multiple-choice questions from exams in 57 subjects, in four categories from STEM to the humanities."
# As the authors' evaluation and lm_eval.
WEIGHTING = Weighting.WEIGHTING_ITEMS

_REVISION = "c30699e8356da336a370243923dbaf21066bb9fe"
_STEM, _HUMANITIES, _SOCIAL, _OTHER = "STEM", "Humanities", "Social sciences", "Other"

# Subject: category and number of test items.
_SUBJECTS = {
    "abstract_algebra": (_STEM, 100),
    "anatomy": (_OTHER, 135),
    "astronomy": (_STEM, 152),
    "business_ethics": (_OTHER, 100),
    "clinical_knowledge": (_OTHER, 265),
    "college_biology": (_STEM, 144),
    "college_chemistry": (_STEM, 100),
    "college_computer_science": (_STEM, 100),
    "college_mathematics": (_STEM, 100),
    "college_medicine": (_OTHER, 173),
    "college_physics": (_STEM, 102),
    "computer_security": (_STEM, 100),
    "conceptual_physics": (_STEM, 235),
    "econometrics": (_SOCIAL, 114),
    "electrical_engineering": (_STEM, 145),
    "elementary_mathematics": (_STEM, 378),
    "formal_logic": (_HUMANITIES, 126),
    "global_facts": (_OTHER, 100),
    "high_school_biology": (_STEM, 310),
    "high_school_chemistry": (_STEM, 203),
    "high_school_computer_science": (_STEM, 100),
    "high_school_european_history": (_HUMANITIES, 165),
    "high_school_geography": (_SOCIAL, 198),
    "high_school_government_and_politics": (_SOCIAL, 193),
    "high_school_macroeconomics": (_SOCIAL, 390),
    "high_school_mathematics": (_STEM, 270),
    "high_school_microeconomics": (_SOCIAL, 238),
    "high_school_physics": (_STEM, 151),
    "high_school_psychology": (_SOCIAL, 545),
    "high_school_statistics": (_STEM, 216),
    "high_school_us_history": (_HUMANITIES, 204),
    "high_school_world_history": (_HUMANITIES, 237),
    "human_aging": (_OTHER, 223),
    "human_sexuality": (_SOCIAL, 131),
    "international_law": (_HUMANITIES, 121),
    "jurisprudence": (_HUMANITIES, 108),
    "logical_fallacies": (_HUMANITIES, 163),
    "machine_learning": (_STEM, 112),
    "management": (_OTHER, 103),
    "marketing": (_OTHER, 234),
    "medical_genetics": (_OTHER, 100),
    "miscellaneous": (_OTHER, 783),
    "moral_disputes": (_HUMANITIES, 346),
    "moral_scenarios": (_HUMANITIES, 895),
    "nutrition": (_OTHER, 306),
    "philosophy": (_HUMANITIES, 311),
    "prehistory": (_HUMANITIES, 324),
    "professional_accounting": (_OTHER, 282),
    "professional_law": (_HUMANITIES, 1534),
    "professional_medicine": (_OTHER, 272),
    "professional_psychology": (_SOCIAL, 612),
    "public_relations": (_SOCIAL, 110),
    "security_studies": (_SOCIAL, 245),
    "sociology": (_SOCIAL, 201),
    "us_foreign_policy": (_SOCIAL, 100),
    "virology": (_OTHER, 166),
    "world_religions": (_HUMANITIES, 171),
}
_PROPER = {"us": "US", "european": "European"}


def subject(suite: str, task: str, category: str = "") -> MultipleChoice:
    """A subject as a task of a suite; without a category, in the authors' one."""
    known, items = _SUBJECTS[task]
    words = task.split("_")
    name = " ".join(_PROPER.get(word, word) for word in words)
    return MultipleChoice(
        suite=suite,
        task=task,
        title=name[0].upper() + name[1:],
        source=Source("cais/mmlu", task, _REVISION),
        split="test",
        train_split="dev",
        max_shots=5,
        texts={"question": "Question"},
        instruction=f"Answer this multiple-choice question about {name}.",
        prepare=_stripped,
        context="{question}\n{lettered}\nAnswer:",
        preamble=f"The following are multiple choice questions (with answers) about {' '.join(words)}.\n\n",
        metrics=(ACCURACY,),
        published_items=items,
        category=category or known,
    )


def _stripped(row: Row) -> Row:
    return {**row, "question": row["question"].strip()}


TASKS: tuple[MultipleChoice, ...] = tuple(subject(SUITE, task) for task in _SUBJECTS)
