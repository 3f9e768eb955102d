"""HellaSwag's scenes are free of marks."""

from __future__ import annotations

from pathlib import Path

from tests.unit.evaluator.tasks.tasks import LOGLIKELIHOOD, items, made


def test_hellaswag_scene_is_free_of_marks(tmp_path: Path) -> None:
    for item in items(made(tmp_path, "hellaswag/hellaswag", LOGLIKELIHOOD)):
        assert "[" not in item.context + "".join(item.choices)
