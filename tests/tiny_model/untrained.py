"""A small model with random weights, in the environment of `make model-env`.

`python -m tests.tiny_model.untrained <rows.jsonl> <directory to save to> <seed>`: what a test of loading and serving
needs, in seconds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from tests.tiny_model.train import model_for, tokenizer_of


def main(rows_path: Path, save_to: Path, seed: int) -> None:
    torch.manual_seed(seed)
    tokenizer = tokenizer_of([json.loads(line) for line in rows_path.read_text().splitlines()])
    model_for(tokenizer).save_pretrained(save_to)
    tokenizer.save_pretrained(save_to)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
