"""A small mirror of GLUE's schema with rows of our own, for tests that need every task."""

from __future__ import annotations

import json
from pathlib import Path

Row = dict[str, str | float | None]

_SENTENCES: dict[str, list[tuple[str, int]]] = {
    "cola": [
        ("The baker opened the shop at six.", 1),
        ("The baker the shop opened at six.", 0),
        ("Nobody had expected such a short winter.", 1),
        ("Nobody had expect such a short winter.", 0),
        ("We asked her whether she knew the way.", 1),
        ("We asked her whether knew she the way.", 0),
        ("The children built themselves a hut.", 1),
        ("The children built herself a hut.", 0),
        ("What did the postman bring?", 1),
        ("What did the postman bring a letter?", 0),
        ("The lamp on the tables is new.", 1),
        ("The lamps on the table is new.", 0),
    ],
    "sst2": [
        ("a warm and funny portrait of a family", 1),
        ("two hours that feel like a week", 0),
        ("never dull for a moment ", 1),
        ("the jokes are older than the cast", 0),
        ("beautifully shot, and moving besides", 1),
        ("pretty pictures, but nothing to say", 0),
        ("the best surprise of this season", 1),
        ("a plot that nobody seems to have read", 0),
        ("it earns every laugh", 1),
        ("loud, long and {empty}", 0),
        ("small, quiet and wonderful", 1),
        ("hard to sit through", 0),
    ],
}

_PAIRS: list[tuple[str, str]] = [
    ("The ferry leaves at noon.", "At noon the ferry leaves."),
    ("Maria has sold her old car.", "Maria has bought an old car."),
    ("All of the shops were closed.", "No shop was open."),
    ("The bridge was built in 1930.", "The bridge is from 1931."),
    ("He forgot to water the plants.", "The plants were not watered by him."),
    ("Rain is expected on Friday.", "It rained last Friday."),
    ("The dog chased the postman.", "The postman was chased by the dog."),
    ("She plays the cello.", "She plays chess."),
    ("Prices fell by a tenth.", "Prices went down by ten per cent."),
    ("The museum is free on Sundays.", "The museum is closed on Sundays."),
    ("Tom is taller than Ali.", "Ali is shorter than Tom."),
    ("They met in Rome.", "They have never met."),
]

# (configuration, text columns, labels that rows take in turn)
_PAIR_SETS: list[tuple[str, tuple[str, str], tuple[float, ...]]] = [
    ("mrpc", ("sentence1", "sentence2"), (1, 0)),
    ("qqp", ("question1", "question2"), (1, 0)),
    ("stsb", ("sentence1", "sentence2"), (5.0, 1.25, 4.8, 2.0, 0.0, 3.799999952316284)),
    ("mnli", ("premise", "hypothesis"), (0, 2, 0, 1)),
    ("qnli", ("question", "sentence"), (0, 1)),
    ("rte", ("sentence1", "sentence2"), (0, 1)),
    ("wnli", ("sentence1", "sentence2"), (1, 0)),
]


def rows() -> dict[str, list[Row]]:
    """Twelve rows by configuration; `idx` is null here and there, as in the published files."""
    by_config: dict[str, list[Row]] = {
        config: [{"sentence": text, "label": label, "idx": None} for text, label in sentences]
        for config, sentences in _SENTENCES.items()
    }
    for config, (first, second), labels in _PAIR_SETS:
        by_config[config] = [
            {first: one, second: other, "label": labels[index % len(labels)], "idx": index if index % 3 else None}
            for index, (one, other) in enumerate(_PAIRS)
        ]
    return by_config


def write(root: Path, *, mismatched: bool = True) -> Path:
    """Lays the mirror out under `root` and returns it. Without `mismatched`, MNLI has its matched split only."""
    for config, content in rows().items():
        folder = root / "nyu-mll" / "glue" / config
        folder.mkdir(parents=True)
        splits = ["validation"] if config != "mnli" else ["validation_matched"]
        if config == "mnli" and mismatched:
            splits.append("validation_mismatched")
        for split in splits:
            _write(folder / f"{split}.jsonl", content)
        _write(folder / "train.jsonl", list(reversed(content)))
    return root


def _write(path: Path, content: list[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in content))
