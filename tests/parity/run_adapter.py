"""Runs tasks of the open suite `lm_eval` through our own parts, in the environment of `make parity-env`.

`python run_adapter.py <mirror> <base url> <found.json>` from the repository's root. For each task of LOGLIKELIHOOD it
writes what our results hold item by item; for SOLVED, how given texts are scored; for REFUSED, the sentences.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from services.errors import InvalidRequestError
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.lm_eval.suite import LmEvalSuite
from services.evaluator.providers.openai.chat import OpenAIProvider
from services.evaluator.providers.protocol.provider import Request
from touchstone.v1 import job_pb2, suite_pb2

LOGLIKELIHOOD = ("hellaswag", "arc_easy", "mmlu_anatomy", "cola")
SOLVED = "gsm8k"
REFUSED = ("wikitext", "humaneval", "mmmu_val_accounting", "gsm8k", "no_such_task", "../cola")

WEIGHTED = ("mmlu", "mmlu_stem", "bbh", "blimp", "ai2_arc", "hellaswag")
"""Groups of groups, groups by size and not, a tag, and a task."""


async def answered(catalogue: Catalogue, url: str, name: str) -> dict[str, Any]:
    task = catalogue.task(f"lm_eval:{name}", name, suite_pb2.MODE_LOGLIKELIHOOD)
    asked = OpenAIProvider(Endpoint("parity", "openai", base_url=url))
    items = []
    for item in task.items(range(task.size())):
        response = await asked.loglikelihoods(Request("parity", job_pb2.Sampling(), task, item))
        items.append(
            {
                "requests": [[item.context, choice] for choice in item.choices],
                "loglikelihoods": [each.loglikelihood for each in response.continuations],
                "statistics": dict(task.score(item, response).statistics),
            }
        )
    await asked.close()
    return {"items": items, "metrics": [metric.metric for metric in task.metrics], "revision": task.revision()}


def solved(catalogue: Catalogue) -> dict[str, Any]:
    task = catalogue.task(f"lm_eval:{SOLVED}", SOLVED, suite_pb2.MODE_GENERATE)
    (item,) = task.items([0])
    number = item.reference.rpartition("#### ")[2]
    texts = {"strict": f"So.\n#### {number}", "flexible": f"That makes {number}", "none": "I do not know."}
    scored = {name: task.score(item, Response(text)) for name, text in texts.items()}
    return {
        "shots": task.shots,
        "roles": [message.role for message in item.messages],
        "stop": item.stop,
        "metrics": [metric.metric for metric in task.metrics],
        "scored": {name: [each.outcome, dict(each.statistics)] for name, each in scored.items()},
    }


def refused(suite: LmEvalSuite) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in REFUSED:
        try:
            suite.task(name, suite_pb2.MODE_LOGLIKELIHOOD, 0)
        except InvalidRequestError as error:
            found[name] = error.message
    return found


if __name__ == "__main__":
    mirror = Path(sys.argv[1])
    suite = LmEvalSuite(mirror)
    catalogue = Catalogue(mirror, [suite])
    found = {
        "loglikelihood": {name: asyncio.run(answered(catalogue, sys.argv[2], name)) for name in LOGLIKELIHOOD},
        "solved": solved(catalogue),
        "refused": refused(suite),
        "members": suite.tasks("mmlu"),
        "weightings": {name: suite_pb2.Weighting.Name(suite.weighting(name)) for name in WEIGHTED},
    }
    Path(sys.argv[3]).write_text(json.dumps(found))
