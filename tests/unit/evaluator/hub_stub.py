"""A Hugging Face Hub of one data set, on loopback: what `datasets` asks for while it loads Parquet files."""

from __future__ import annotations

import hashlib
import io
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pyarrow.parquet as pq

_CARD = b"""---
configs:
- config_name: cola
  data_files:
  - {split: train, path: cola/train-*}
  - {split: validation, path: cola/validation-*}
---
"""


def cola(rows: int) -> bytes:
    """A Parquet file of CoLA's schema."""
    table = pa.table(
        {
            "sentence": [f"There are {n} lamps." for n in range(rows)],
            "label": pa.array([n % 2 for n in range(rows)], pa.int64()),
            "idx": pa.array(range(rows), pa.int32()),
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


@contextmanager
def serving(dataset: str, commit: str) -> Iterator[str]:
    """The stub's address; it holds CoLA with 8 train and 5 validation rows at `commit`."""
    files = {
        "README.md": _CARD,
        "cola/train-00000-of-00001.parquet": cola(8),
        "cola/validation-00000-of-00001.parquet": cola(5),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            api, resolve = f"/api/datasets/{dataset}", f"/datasets/{dataset}/resolve/{commit}/"
            if path in (api, f"{api}/revision/{commit}", f"{api}/revision/main"):
                siblings = [{"rfilename": name} for name in files]
                self._json(200, {"id": dataset, "sha": commit, "siblings": siblings, "private": False, "tags": []})
            elif path.startswith(f"{api}/tree/{commit}"):
                self._tree(path.removeprefix(f"{api}/tree/{commit}").strip("/"))
            elif (name := path.removeprefix(resolve)) in files:
                self._answer(200, files[name], {"ETag": f'"{_oid(files[name])}"', "X-Repo-Commit": commit})
            else:
                self._answer(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})

        do_HEAD = do_GET  # noqa: N815 - the base class's name

        def _tree(self, folder: str) -> None:
            within = [name for name in files if name.startswith(f"{folder}/" if folder else "")]
            entries = [
                {"type": "file", "path": name, "oid": _oid(files[name]), "size": len(files[name])}
                for name in within
                if "/" not in name.removeprefix(f"{folder}/" if folder else "")
            ]
            if not folder:
                entries.append({"type": "directory", "path": "cola", "oid": "0" * 40, "size": 0})
            self._json(200 if within else 404, entries)

        def _json(self, status: int, document: object) -> None:
            self._answer(status, json.dumps(document).encode(), {"Content-Type": "application/json"})

        def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the tests' output stays their own."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
