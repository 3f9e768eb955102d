"""`POST /api/bench/run`: models × prompts × scenarios, as one job for each model; `GET /api/bench/experiments`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence

from services import numbers, rpc
from services.errors import InvalidFieldsError, InvalidRequestError
from services.experiments import documents, reading
from services.experiments.definition import KEEP_ALIVE, MAX_MODEL_B, N_TIPS
from services.experiments.fields import NAME_RULE
from services.experiments.scenarios import MOST_SCENARIOS, tips
from services.gateway.api.answers import members
from services.gateway.api.declare.endpoint import BENCH, Call, Endpoint
from services.gateway.api.jobs.run import CONFIG, judge_of, judges_in
from services.gateway.fields.checks import Check, Field, Problem, boolean, integer, list_of, number, record, text
from services.gateway.fields.job import check_of, in_rest, option, parameter_about
from services.gateway.fields.judges import RUBRIC, of_model
from services.gateway.fields.query import NEXT_PAGE_TOKEN, PAGE_TOKEN, limit
from services.gateway.fields.schema import COUNT, STRING, Schema, about, array, null, shape
from services.gateway.http.responses import FieldErrors, JSONResponse
from services.gateway.reads import airflow
from services.words import rubrics
from services.words.sampling import BY_REST_NAME
from touchstone.v1 import results_service_pb2, scheduler_service_pb2

_KINDS: dict[str, type] = {"string": str, "array": list, "object": dict}


def _any_of(means: str, *kinds: str, items: tuple[str, ...] = ()) -> Check:
    """A value of one of these kinds of JSON, a list having `items` of these; the definition's own reader checks the
    rest. `means` describes it."""
    allowed, within = tuple(_KINDS[kind] for kind in kinds), tuple(_KINDS[kind] for kind in items)

    def judge(value: object, path: str) -> Iterator[Problem]:
        listed = value if isinstance(value, list) else []
        if not isinstance(value, allowed) or not all(isinstance(one, within) for one in listed):
            yield path, f"{path} must be {means}."

    listing: Schema = {"type": "array", "items": _one_of(items)}
    return Check(_one_of(kinds, listing), judge)


def _one_of(kinds: Sequence[str], listing: Schema | None = None) -> Schema:
    schemas: list[Schema] = [listing if kind == "array" and listing else {"type": kind} for kind in kinds]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


_NAME = text(64, pattern="[A-Za-z0-9_.-]+", means=NAME_RULE)
DEFINITION: dict[str, Field] = {
    "name": Field(_NAME, about="The experiment's name. Required, here or as `experiment`."),
    "experiment": Field(_NAME, about="The same as `name`. Give one of the two."),
    "models": Field(
        _any_of("names separated by commas, or a list of models", "string", "array", items=("string", "object")),
        about=f"Required: 1 to {reading.MOST_MODELS} models, each `provider/model`, `model@provider`, `model`, or an "
        "object with both. Or their names in one text, separated by commas.",
    ),
    "provider": Field(
        text(200),
        about="The endpoint of models that name none, or its kind if only one endpoint has it. If absent, the first "
        "endpoint of kind `ollama`.",
    ),
    "prompts": Field(
        _any_of("ids separated by commas, or a list of prompts", "string", "array", items=("string", "object")),
        about=f"Required: 1 to {reading.MOST_PROMPTS} prompts, each the id of a shipped one or an object with `id` and "
        "`template`. Or ids in one text, separated by commas.",
    ),
    "scenarios": Field(
        _any_of("an object with set and count, or a list of objects", "object", "array", items=("object",)),
        about=f'`{{"set": "tips", "count": 20}}`, or up to {MOST_SCENARIOS:,} objects. If absent, all of the set '
        "`tips`.",
    ),
    "n_scenarios": Field(integer(1, len(tips())), about="In place of `scenarios`: this many of the set `tips`."),
    "repeats": Field(integer(1, reading.MOST_REPEATS), about="How often each question is asked. 1 if absent."),
    "n_tips": Field(integer(1, reading.MOST_TIPS), about="What `{{n_tips}}` inserts.", default=N_TIPS),
    "diversity": Field(boolean, about="Whether `{{diversity}}` asks for tips that differ.", default=False),
    **{name: Field(check_of(one), about=parameter_about(name)) for name, one in BY_REST_NAME.items()},
    "max_model_b": Field(
        number(0, numbers.MOST_PARAMETERS_B),
        about="The largest model, in billions of parameters. 0 means any.",
        default=MAX_MODEL_B,
    ),
    "max_judge_b": Field(
        number(0, numbers.MOST_PARAMETERS_B),
        about="The largest judge, in billions of parameters. 0 means any. `max_model_b` if absent.",
    ),
    "keep_alive": Field(integer(KEEP_ALIVE, KEEP_ALIVE), about="Always 0: a model leaves the memory after its answer."),
    "rubric": Field(
        _any_of("the name of a shipped rubric, or a rubric", "string", "object"),
        about=f"What answers are judged by: `{reading.RUBRIC}`, which is the default, or a rubric.",
    ),
    "budget_usd": option("budget_usd", "The most that all of its jobs may cost together. It needs known prices."),
    "priority": option("priority"),
}
BODY = record(
    DEFINITION
    | {
        "judges": Field(
            list_of(
                record(
                    {name: field for name, field in of_model(CONFIG).items() if name != "rubric"},
                    name="JudgeOfExperiment",
                ),
                rubrics.MOST_JUDGES,
            ),
            about="Models that judge all answers by the experiment's rubric, once none of its jobs waits or runs.",
        ),
        "request_id": Field(text(64), about="Your own id of the request."),
        "check_only": Field(boolean, about="Check everything and start nothing.", default=False),
    },
    name="ExperimentRequest",
)
NAME = about(STRING, "The experiment's name.")
DATASET_ID = about(null(STRING), "The dataset with its rows. null before the first start.")
JOB = shape(
    {
        "job_id": members.JOB_ID,
        "provider": members.PROVIDER,
        "model": members.MODEL,
        "status": members.STATUS,
        "items_done": about(COUNT, "Its rows that are done."),
        "items_total": about(COUNT, "Its rows. 0 while they are not known."),
    },
    name="ExperimentJob",
)
STARTED: Schema = shape(
    {
        "experiment": NAME,
        "dataset_id": DATASET_ID,
        "jobs": about(array(JOB), "One for each model, in their order. With `check_only` those that there are."),
        "cells": about(COUNT, "Combinations of model, prompt and scenario."),
        "calls": about(COUNT, "Questions: cells × repeats."),
        "deleted_judges": about(
            array(
                shape(
                    {
                        "judge": about(COUNT, "Its place in `judges`, from 0."),
                        "job_ids": about(array(STRING), "The jobs whose answers it does not judge again."),
                    },
                    name="DeletedJudge",
                )
            ),
            "Judges of this call whose job was deleted. The scheduler knows them for a day.",
        ),
        "dag_run": about(
            null(
                shape(
                    {
                        "dag_run_id": about(STRING, "Its id in Airflow."),
                        "url": about(STRING, "Its page in Airflow."),
                    },
                    name="ExperimentDagRun",
                )
            ),
            "The run of Airflow's DAG that starts and follows the jobs. null where Touchstone started them itself.",
        ),
        "message": members.MESSAGE,
    },
    name="ExperimentStarted",
)
EXPERIMENT = shape(
    {
        "name": NAME,
        "owner": members.OWNER,
        "created_at": members.CREATED_AT,
        "dataset_id": DATASET_ID,
        "prompts": about(array(STRING), "The ids of its prompts, in order."),
        "scenarios": about(COUNT, "The number of its scenarios."),
        "repeats": about(COUNT, "How often each question is asked."),
        "rubric": about(null(RUBRIC.schema), "What its answers are judged by."),
        "jobs": about(array(JOB), "The newest job of each model."),
    },
    name="Experiment",
)
EXPERIMENTS: Schema = shape(
    {"experiments": about(array(EXPERIMENT), "Newest first."), "next_page_token": NEXT_PAGE_TOKEN}, name="Experiments"
)


async def run(call: Call) -> JSONResponse:
    """Starts or continues an experiment, by the DAG where Airflow is set up. 403 for callers who are not admins, 422
    with each wrong field, 409 if an experiment of that name has other rows."""
    rpc.require_admin(call.caller)  # Before anything is looked up.
    body = call.body
    only_check = body.get("check_only") or False
    try:
        definition = {name: value for name, value in body.items() if name in DEFINITION}
        if "provider" in body:
            definition["provider"] = (await call.ctx.catalogue.endpoint(body["provider"], "provider")).endpoint
        request = scheduler_service_pb2.RunExperimentRequest(
            # Calls are repeated when a scheduler is silent.
            request_id=body.get("request_id") or uuid.uuid4().hex,
            definition=json.dumps(definition, ensure_ascii=False),
            judges=[await judge_of(call, one, f"judges[{place}].") for place, one in judges_in(body)],
            check_only=only_check,
        )
        made, begun = await airflow.run_experiment(call.ctx.backend, call.ctx.settings, request, call.caller)
    except InvalidRequestError as error:
        raise FieldErrors(_problems(error)) from error
    if only_check:
        message = "The definition is right."
    else:
        message = f"Experiment {made.experiment} runs{' in Airflow' if begun else ''}."
    return JSONResponse(
        {
            "experiment": made.experiment,
            "dataset_id": made.dataset_id or None,
            "jobs": [documents.job(job) for job in made.jobs],
            "cells": made.cells,
            "calls": made.calls,
            "deleted_judges": [{"judge": one.judge, "job_ids": list(one.job_ids)} for one in made.deleted_judges],
            "dag_run": {"dag_run_id": begun.run_id, "url": begun.url} if begun else None,
            "message": message,
        }
    )


def _problems(error: InvalidRequestError) -> list[Problem]:
    found = error.problems if isinstance(error, InvalidFieldsError) else [(error.field, error.message)]
    return [(field, in_rest(sentence)) for field, sentence in found]


async def experiments(call: Call) -> JSONResponse:
    """Newest first. 403 for callers who are not admins."""
    request = results_service_pb2.ListExperimentsRequest(
        page_size=call.query["limit"], page_token=call.query["page_token"]
    )
    found = await call.ask(call.ctx.backend.results.ListExperiments, request)
    shown = [documents.experiment(one) for one in found.experiments]
    return JSONResponse({"experiments": shown, "next_page_token": found.next_page_token})


RUN_EXPERIMENT = Endpoint(
    "POST",
    "/run",
    run,
    "runExperiment",
    "Start or continue an experiment: ask models with prompts in scenarios. For admins.",
    STARTED,
    body=BODY,
    errors=(409,),
    gives={"experiment": "/experiment", "job_id": "/jobs/0/job_id"},
    base=BENCH,
)
LIST_EXPERIMENTS = Endpoint(
    "GET",
    "/experiments",
    experiments,
    "listExperiments",
    "List the experiments. For admins.",
    EXPERIMENTS,
    query=(limit(20, 100), PAGE_TOKEN),
    gives={"experiment": "/experiments/0/name"},
    base=BENCH,
)
