"""The examples of docs/datasets.md are datasets."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.results.uploads import upload
from touchstone.v1.dataset_pb2 import Dataset
from touchstone.v1.scoring_pb2 import Scoring

DOCUMENT = Path(__file__).parents[5] / "docs/datasets.md"
BLOCK = re.compile(r"```(jsonl|csv|template)\n(.*?)```", re.DOTALL)


def test_every_example_is_read_in_its_form() -> None:
    template, formats = "", []
    for kind, text in BLOCK.findall(DOCUMENT.read_text()):
        if kind == "template":
            template = text.strip()
            continue
        scoring = Scoring(scorer="tool_calls" if '"reference": []' in text else "")
        scoring.group_field = "passage_id" if "passage_id" in text else ""
        made = upload(text.encode(), name=f"example.{kind}", template=template, scoring=scoring)
        assert made.dataset is not None, made.bad or made.refusal
        assert made.dataset.groups == (2 if scoring.group_field else 0)
        formats.append(made.dataset.format)
        template = ""

    images_and_tools = in_groups = calls = Dataset.FORMAT_LINES
    forms = [Dataset.FORMAT_BATCH, Dataset.FORMAT_LINES, Dataset.FORMAT_COLUMNS, Dataset.FORMAT_CSV]
    of_messages = Dataset.FORMAT_COLUMNS
    assert formats == [*forms, of_messages, images_and_tools, in_groups, calls]
