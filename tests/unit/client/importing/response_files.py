"""Files of answers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from touchstone_client.importing import reading
from touchstone_client.importing.log import Log


def written(folder: Path, *lines: Any, name: str = "answers.jsonl") -> Path:
    file = folder / name
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return file


def read(folder: Path, *lines: Any, name: str = "answers.jsonl") -> Log:
    (log,) = reading.read([written(folder, *lines, name=name)])
    return log
