"""What runs inside Airflow's environment, with a line of JSON for each result.

`python inside.py run CONF [CONF …]` runs the DAG once for each `dag_run.conf`: states, tries and results of the tasks.
`python inside.py wait EXPERIMENT` waits for an experiment in a trigger that is stopped and made anew from what Airflow
keeps of it: that, and the event.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.configuration import conf as settings
from airflow.sdk.module_loading import import_string

sys.path += [settings.get("core", "dags_folder"), settings.get("core", "plugins_folder")]

from touchstone_airflow import AnswersTrigger
from touchstone_bench import dag


def run(conf: str) -> dict[str, Any]:
    made = dag.test(run_conf=json.loads(conf))
    tasks = {
        task.task_id: {"state": task.state, "tries": task.try_number, "result": task.xcom_pull(task.task_id)}
        for task in made.get_task_instances()
    }
    return {"state": made.state, "tasks": tasks}


async def wait(experiment: str) -> dict[str, Any]:
    path, kept = AnswersTrigger(experiment).serialize()
    first = asyncio.ensure_future(anext(import_string(path)(**kept).run()))
    stopped = not (await asyncio.wait([first], timeout=3))[0]
    first.cancel()
    _let_models_answer()
    event = await anext(import_string(path)(**kept).run())
    return {"path": path, "kept": kept, "stopped": stopped, "event": event.payload}


def _let_models_answer() -> None:
    Path("stopped").touch()


if __name__ == "__main__":
    verb, *words = sys.argv[1:]
    for task in dag.tasks:
        task.retry_delay = timedelta(0)
    for word in words:
        print(json.dumps(run(word) if verb == "run" else asyncio.run(wait(word))), flush=True)
