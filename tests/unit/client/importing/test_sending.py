"""What is sent of an import."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

from tests.unit.client.importing.imports import GOOD, KNOWN, ROW, SCORED, made
from tests.unit.client.importing.response_files import read
from tests.unit.client.logs import choices, generated, lm_eval
from touchstone_client.importing import reading
from touchstone_client.importing.log import Target
from touchstone_client.importing.names import resolve
from touchstone_client.importing.sending import Import


def test_the_same_file_for_another_dataset_or_model_is_another_import(tmp_path: Path) -> None:
    log = read(tmp_path, {"id": 1, "response": "x"})
    targets = {"answers": [Target("", "rows")]}
    digests = [Import([log], model, "", targets, of).run.digest for model, of in (("m", "a"), ("m", "b"), ("n", "a"))]
    assert len(set(digests)) == 3
    assert Import([log], "m", "", targets, "a").run.digest == digests[0]
    spec = Import([log], "m", "", targets, "a").spec("i", 1)
    assert (spec.dataset.dataset_id, spec.endpoint, spec.reuse.import_id) == ("a", "imported", "i")


def test_messages_stay_small_and_reading_takes_no_memory(tmp_path: Path) -> None:
    lines = (json.dumps(generated(item, ROW, "p", "y" * 20_000)) for item in range(1500))
    logs = reading.read([lm_eval(tmp_path, "rte", lines)])
    taken = made(logs)
    tracemalloc.start()
    sizes = [(len(request.answers), request.ByteSize()) for request in taken.requests()]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(count for count, _ in sizes) == 1500
    assert max(count for count, _ in sizes) <= 1000
    assert max(size for _, size in sizes) < 3_000_000
    assert peak < 12_000_000, "of a log of 30 MB"


def test_the_digest_tells_what_was_imported_and_not_where_it_lay(tmp_path: Path) -> None:
    def digest(folder: str, lines: list[Any], model: str = "m", shots: int = 0) -> str:
        logs = reading.read([lm_eval(tmp_path / folder, "rte", lines, shots=shots)])
        return Import(logs, model, *resolve(logs, KNOWN, "", {})).run.digest

    same = [digest("a", [GOOD]), digest("b", [GOOD])]
    others = [
        digest("c", [GOOD, choices(1, ROW, "A?", SCORED)]),
        digest("d", [GOOD], "n"),
        digest("e", [GOOD], shots=1),
    ]
    assert len({*same, *others}) == 4
    assert same[0] == same[1]
