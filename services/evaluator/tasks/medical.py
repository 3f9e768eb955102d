"""Medical questions: MedQA (Jin et al. 2020), MedMCQA (Pal et al. 2022), PubMedQA (Jin et al. 2019), and the six
medical subjects of MMLU.

Contexts and continuations of log-likelihood mode are those of lm_eval 0.4.13. It reads MedQA and PubMedQA from other
copies of the data, the second by a script that no longer loads.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from services.evaluator.data import tables
from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import ACCURACY, MACRO_F1
from services.evaluator.tasks import mmlu
from services.evaluator.tasks.kinds.definition import Definition, Row
from services.evaluator.tasks.kinds.multiple_choice import MultipleChoice
from services.evaluator.tasks.kinds.text import Classification
from services.evaluator.tasks.pubmedqa_test_ids import TEST_IDS
from touchstone.v1.suite_pb2 import Weighting

SUITE = "medical"
TITLE = "Medical"
DESCRIPTION = "Exam questions for physicians (MedQA, MedMCQA, MMLU) and questions on research abstracts (PubMedQA)."
# Papers report the mean of these nine, such as Qiu et al., Nature Communications 15 (2024), table 3.
WEIGHTING = Weighting.WEIGHTING_TASKS

_EXAMS, _RESEARCH, _MMLU = "Exams", "Research", "MMLU subjects"
_MMLU_SUBJECTS = (
    "anatomy",
    "clinical_knowledge",
    "college_biology",
    "college_medicine",
    "medical_genetics",
    "professional_medicine",
)
_FOUR_OPTIONS = pa.struct([(letter, pa.string()) for letter in "ABCD"])


def _medqa(row: Row) -> Row:
    return {**row, "choices": [row["options"][letter] for letter in "ABCD"]}


def _medmcqa(row: Row) -> Row:
    return {**row, "choices": [row["opa"], row["opb"], row["opc"], row["opd"]]}


def _pubmedqa(row: Row) -> Row:
    """The abstract without its conclusion (`long_answer`), which would give the answer away."""
    return {**row, "abstract": "\n".join(row["context"]["contexts"])}


def _official_test(table: pa.Table) -> pa.Array:
    return pc.is_in(table["pubid"], tables.integer_array(sorted(TEST_IDS)))


def _not_in_test(table: pa.Table) -> pa.Array:
    return pc.invert(_official_test(table))


TASKS: tuple[Definition, ...] = (
    MultipleChoice(
        suite=SUITE,
        task="medqa",
        title="MedQA",
        source=Source("GBaker/MedQA-USMLE-4-options", "default", "0fb93dd23a7339b6dcd27e241cb9b5eca62d4d18"),
        split="test",
        texts={"question": "Question"},
        instruction="Answer this question of a medical licensing exam.",
        columns={"question": pa.string(), "options": _FOUR_OPTIONS, "answer_idx": pa.string()},
        prepare=_medqa,
        target="answer_idx",
        context="Question: {question}\n{lettered}\nAnswer:",
        metrics=(ACCURACY,),
        published_items=1273,
        category=_EXAMS,
    ),
    MultipleChoice(
        suite=SUITE,
        task="medmcqa",
        title="MedMCQA",
        source=Source("openlifescienceai/medmcqa", "default", "91c6572c454088bf71b679ad90aa8dffcd0d5868"),
        texts={"question": "Question"},
        instruction="Answer this question of a medical entrance exam.",
        columns={
            "question": pa.string(),
            **dict.fromkeys(("opa", "opb", "opc", "opd"), pa.string()),
            "cop": pa.int64(),
        },
        prepare=_medmcqa,
        target="cop",
        context="Question: {question}\nChoices:\n{lettered}\nAnswer:",
        metrics=(ACCURACY,),
        published_items=4183,
        category=_EXAMS,
        optional=True,
    ),
    Classification(
        suite=SUITE,
        task="pubmedqa",
        title="PubMedQA",
        source=Source("qiaojin/PubMedQA", "pqa_labeled", "9001f2853fb87cab8d220904e0de81ac6973b318"),
        # The Hub has the 1,000 labelled rows as one split: half of them are the official test, examples come from the
        # other half.
        split="train",
        train_split="train",
        keep=_official_test,
        train_keep=_not_in_test,
        texts={"abstract": "Abstract", "question": "Question"},
        instruction="Answer the question from the abstract: yes, no, or maybe if the abstract leaves it open.",
        columns={
            "context": pa.struct([("contexts", pa.list_(pa.string()))]),
            "question": pa.string(),
            "final_decision": pa.string(),
            "pubid": pa.int64(),
        },
        prepare=_pubmedqa,
        target="final_decision",
        labels=("yes", "no", "maybe"),
        context="Abstract: {abstract}\nQuestion: {question}\nAnswer:",
        continuations=("yes", "no", "maybe"),
        metrics=(ACCURACY, MACRO_F1),
        published_items=500,
        category=_RESEARCH,
    ),
    *(mmlu.subject(SUITE, task, _MMLU) for task in _MMLU_SUBJECTS),
)
