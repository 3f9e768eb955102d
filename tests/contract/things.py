"""Jobs and datasets that the tests of one backend share."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, dataclass
from typing import Any

from tests.contract.backends import Backend

FLOOR = {"provider": "baselines", "model": "majority"}
SILENT = {"provider": "vllm-a", "model": "llama3.3:70b"}
"""Its jobs run until they are cancelled."""
MODEL = {"provider": "ollama", "model": "llama3.2:3b"}
"""It answers at once, and some of its answers cannot be read."""
NOBODY = "00000000-0000-4000-8000-000000000000"
"""An id that nothing has."""
ROWS = 6
LINES = b"".join(
    json.dumps(
        {"custom_id": f"c-{n}", "prompt": f"Question {n}", "reference": "A", "metadata": {"name": f"Ada {n}"}}
    ).encode()
    + b"\n"
    for n in range(ROWS)
)
_projects = itertools.count(1001)


@dataclass(frozen=True)
class Things:
    """Ids. `done` and `other` are completed jobs on demo, `live` runs, `run` is completed over `dataset` with the job
    `run_job`; nothing uses `unused`. All of these jobs are in
    `project`. `experiment` has one job, over two rows. `decision` is between two models on demo, has
    ended, and is in a project of its own, as is the completed `replay`."""

    project: int
    done: str
    other: str
    live: str
    run: str
    run_job: str
    dataset: str
    unused: str
    experiment: str
    decision: str
    replay: str

    def put_into(self, value: Any) -> Any:
        """A path or body with the ids in place of their names in braces."""
        text = json.dumps(value)
        for name, known in asdict(self).items():
            text = text.replace(f"{{{name}}}", str(known))
        return json.loads(text)

    def taken_from(self, text: str) -> str:
        """The text with names in braces in place of the ids."""
        for name, known in asdict(self).items():
            text = text.replace(str(known), f"{{{name}}}")
        return text


Twin = tuple[Backend, Things] | None
"""The fakes with things of their own, for comparison; None where the fakes are tested."""


def new_project() -> int:
    """The number of a project that has nothing yet."""
    return next(_projects)


def run(backend: Backend, project: int, config: dict[str, Any] | None = None, **more: Any) -> str:
    """Queues a small job on demo. Its id."""
    body = {"project_id": project, "suite": "demo", "limit": 5, "config": config or FLOOR} | more
    return str(backend.call("POST", "/run", json=body)["job_id"])


def upload(backend: Backend, name: str = "rows.jsonl", data: bytes = LINES, **options: Any) -> str:
    """Stores a dataset. Its id."""
    made = backend.call("POST", "/admin/datasets/upload", data=options, files={"file": (name, data)})
    return str(made["dataset_id"])


def made(backend: Backend) -> Things:
    """Makes all of them."""
    project = new_project()
    done, other = (run(backend, project, FLOOR | {"model": model}) for model in ("majority", "random"))
    for job_id in (done, other):
        backend.finish(job_id)
    live = run(backend, project, SILENT)
    backend.begin(live)
    dataset, unused = upload(backend), upload(backend, "unused.jsonl")
    body = {"model_id": "echo@baselines", "dataset_id": dataset, "project_id": project}
    started = backend.call("POST", "/admin/benchmarks/run", json=body)
    backend.finish(started["job_id"])
    experiment = f"tips-{project}"
    fields = {"provider": "baselines", "models": "echo", "prompts": "v1", "n_scenarios": 2}
    asked = backend.call("POST", "/api/bench/run", json={"name": experiment, **fields})
    backend.finish(asked["jobs"][0]["job_id"])
    asked = {"suite": "demo", "limit": 5, "baseline": FLOOR, "candidate": FLOOR | {"model": "random"}}
    decision = backend.call("POST", "/decisions", json=asked | {"project_id": new_project()})
    for side in ("baseline_job_id", "candidate_job_id"):
        backend.finish(decision[side])
    replayed = run(backend, new_project())
    backend.finish(replayed)
    replay = str(backend.call("POST", f"/replay/{replayed}", json={"items": 10})["job_id"])
    backend.finish(replay)
    return Things(
        project=project,
        done=done,
        other=other,
        live=live,
        run=started["benchmark_id"],
        run_job=started["job_id"],
        dataset=dataset,
        unused=unused,
        experiment=experiment,
        decision=decision["decision_id"],
        replay=replay,
    )
