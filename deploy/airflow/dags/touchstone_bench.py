"""collect → export_for_judge → compare: an experiment of models, prompts and scenarios in Touchstone.

`dag_run.conf` takes every field of a definition (docs/experiments.md), and `judges`. Triggered again with the same
values, it continues the same experiment.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param
from touchstone_airflow import Collect, Compare, ExportForJudge


def _number(about: str, least: float | None = None, most: float | None = None, kind: str = "number") -> Param:
    """An optional number."""
    ends = {name: end for name, end in (("minimum", least), ("maximum", most)) if end is not None}
    return Param(None, type=["null", kind], description=about, **ends)


_WORDS_OR_LIST: dict[str, Any] = {"type": ["string", "array"], "minLength": 1, "minItems": 1}
_PARAMS = {
    "experiment": Param(
        "",
        type="string",
        maxLength=64,
        pattern="^[A-Za-z0-9_.-]*$",
        description="The experiment's name. Without one, tip-bench- and the date.",
    ),
    "models": Param(
        **_WORDS_OR_LIST,
        description="Models to ask: provider/model or model, separated by commas, or a list.",
    ),
    "provider": Param(None, type=["null", "string"], description="The endpoint of models that name none."),
    "prompts": Param(
        "v1,v2-mentor,v3-few-shot",
        **_WORDS_OR_LIST,
        description="Ids of shipped prompts, separated by commas, or a list that may also have your own prompts.",
    ),
    "n_scenarios": _number("How many scenarios of the set tips. All of them if empty.", 1, 210, "integer"),
    "scenarios": Param(
        None, type=["null", "object", "array"], description="Your own scenarios, in place of n_scenarios."
    ),
    "repeats": Param(1, type="integer", minimum=1, maximum=10, description="How often each question is asked."),
    "n_tips": Param(5, type="integer", minimum=1, maximum=20, description="How many tips prompts ask for."),
    "diversity": Param(False, type="boolean", description="Ask for tips that differ."),
    "temperature": _number("The sampling temperature.", 0, 2),
    "top_p": _number("Samples from the most probable tokens that together have this probability.", 0, 1),
    "top_k": _number("Samples from this many most probable tokens.", 0, 100, "integer"),
    "min_p": _number("Samples from tokens that have this share of the highest probability.", 0, 1),
    "repeat_penalty": _number("The penalty on repeated tokens.", 0, 2),
    "num_predict": _number("The most tokens to generate per answer.", 1, 1_000_000, "integer"),
    "num_ctx": _number("The context window in tokens.", 1, 10_000_000, "integer"),
    "seed": _number("The random seed.", kind="integer"),
    "max_model_b": Param(
        4.0, type="number", minimum=0, description="The largest model, in billions of parameters. 0 means any."
    ),
    "max_judge_b": _number("The largest judge, in billions of parameters. 0 means any. max_model_b if empty.", 0),
    "rubric": Param(None, type=["null", "string", "object"], description="The rubric. tip-v1 if empty."),
    "judges": Param(
        [],
        type="array",
        maxItems=3,
        items={"type": ["string", "object"]},
        description="Models that judge all answers: model@endpoint, or objects with the fields of touchstone.v1.Judge.",
    ),
    "budget_usd": _number("The most that the experiment may cost, in US dollars. It needs num_predict.", 0),
    "priority": Param(None, type=["null", "string"], enum=[None, "low", "normal", "high"]),
}

with DAG(
    "touchstone_bench",
    description="Asks models with prompts in scenarios, writes the answers for people, and ranks models and prompts.",
    schedule=None,
    is_paused_upon_creation=False,
    params=_PARAMS,
    default_args={"retries": 1, "retry_delay": timedelta(minutes=1)},
    tags=["touchstone"],
    doc_md=__doc__,
) as dag:
    collect = Collect(task_id="collect")
    export = ExportForJudge(task_id="export_for_judge", experiment=collect.output)
    compare = Compare(task_id="compare", experiment=collect.output)
    export >> compare

if __name__ == "__main__":
    dag.test()
