"""The small model, trained now and served by `transformers serve`: a real OpenAI-compatible server."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx

from deploy.local.ports import free_port
from deploy.local.settings import ROOT
from tests.tiny_model import prompts

ENVIRONMENT = ROOT / ".venv-model"
MODEL = "tiny-sentiment"
TRAIN_TIMEOUT_S = 300
START_TIMEOUT_S = 180


def installed() -> bool:
    """Whether `make model-env` was run here."""
    return (ENVIRONMENT / "bin" / "transformers").exists()


def train(folder: Path, task: str = "sentiment") -> Path:
    """Trains on a demo task's prompts, about half a minute; returns the model's directory, named MODEL."""
    rows, model = folder / "rows.jsonl", folder / MODEL
    prompts.write(rows, folder / "mirror", task)
    script = Path(__file__).with_name("train.py")
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", script, rows, model],
        capture_output=True,
        text=True,
        timeout=TRAIN_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"training failed:\n{done.stderr[-2000:]}")
    print(done.stdout)
    return model


class ModelServer:
    """`transformers serve` of a model's directory on a free loopback port, offline."""

    def __init__(self, model: Path) -> None:
        self.port = free_port()
        self._log = model.with_suffix(".log")
        # Its listing reads the hub's cache folder and fails where there is none.
        cache = model.with_suffix(".cache")
        (cache / "hub").mkdir(parents=True, exist_ok=True)
        # One thread: a model this small loses nine tenths of its speed to synchronising two.
        environment = dict(os.environ) | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(cache), "OMP_NUM_THREADS": "1"}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(ENVIRONMENT / "bin" / "transformers", "serve", model.name),
                    *("--host", "127.0.0.1", "--port", str(self.port), "--device", "cpu"),
                ],
                # The path as given is the model's name in requests, so give its name only.
                cwd=model.parent,
                env=environment,
                stdout=log,
                stderr=log,
            )
        self._wait_healthy()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def endpoint(self, name: str) -> dict[str, Any]:
        """The table of an endpoints file that offers this model."""
        return {"name": name, "kind": "openai", "base_url": self.base_url, "models": [MODEL], "concurrency": 8}

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _wait_healthy(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._healthy():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"the model server did not start:\n{self._log.read_text()[-2000:]}")
            time.sleep(0.1)

    def _healthy(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/health", trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False
