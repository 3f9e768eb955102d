"""`GET /noise`: how much scores change when the same items are asked again."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from services.gateway.api.answers import members
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.checks import text
from services.gateway.fields.query import Parameter
from services.gateway.fields.schema import COUNT, NUMBER, STRING, Schema, about, array, null, pair, shape
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
from services.words import noise
from touchstone.v1 import noise_pb2, results_service_pb2

TIMEOUT_S = 60.0
_PARTS = ("reasking", "runs", "servings", "interaction")


async def get_noise(call: Call) -> JSONResponse:
    """400 for jobs that did not ask the same, or asked no item twice; 404 for a job without a finished run."""
    named = [jobs.checked_id(name.strip()) for name in call.query["job_ids"].split(",") if name.strip()]
    backend = call.ctx.backend
    request = results_service_pb2.GetNoiseRequest(job_ids=named)
    found = await backend.ask(backend.results.GetNoise, request, call.caller, timeout_s=TIMEOUT_S)
    return JSONResponse({"noise": body(found.noise)})


def body(found: noise_pb2.Noise) -> dict[str, Any]:
    return {
        "suite": found.suite,
        "servings": [
            {
                "model": serving.model,
                "provider": serving.endpoint,
                "runs": [{"job_id": run.job_id, "repeats": run.repeats, "score": run.score} for run in serving.runs],
            }
            for serving in found.servings
        ],
        "total": _figures(found.total),
        "tasks": [_figures(one) for one in found.tasks],
        "words": [*noise.sentences(found.total)],
        "notes": list(found.notes),
    }


def _figures(one: noise_pb2.NoiseFigures) -> dict[str, Any]:
    variance = one.variance if one.HasField("variance") else None
    return {
        "task": one.task or None,
        "title": one.title or None,
        "items": one.items,
        "reasking": flips_body(one.reasking) if one.HasField("reasking") else None,
        "servings": flips_body(one.servings) if one.HasField("servings") else None,
        "variance": None
        if variance is None
        else {"items": variance.items} | {name: _optional(variance, name) for name in _PARTS},
        "floor": _optional(one, "floor"),
    }


def flips_body(found: noise_pb2.Flips) -> dict[str, Any]:
    return {"share": found.share, "interval": [found.low, found.high]}


def _optional(message: Message, field: str) -> float | None:
    return getattr(message, field) if message.HasField(field) else None


FLIPS: Schema = shape(
    {
        "share": about(
            NUMBER,
            "The mean difference of an item's two scores, without its sign: of right and wrong answers, the share of "
            "items that flip.",
        ),
        "interval": about(pair(NUMBER), "Its 95 % interval, over items like these."),
    },
    name="Flips",
)
_FIGURES: Schema = shape(
    {
        "task": about(null(STRING), "The task. null for all of them."),
        "title": about(null(STRING), "The task's title."),
        "items": about(COUNT, "The number of items with a score in every asking."),
        "reasking": about(null(FLIPS), "Between two askings by one serving. null where none asked twice."),
        "servings": about(null(FLIPS), "Between askings by two servings. null with one serving."),
        "variance": about(
            null(
                shape(
                    {
                        "items": about(NUMBER, "Some items are harder."),
                        "reasking": about(null(NUMBER), "Asked again, an item gets another score."),
                        "runs": about(null(NUMBER), "A whole run is better or worse."),
                        "servings": about(null(NUMBER), "A whole serving is better or worse."),
                        "interaction": about(null(NUMBER), "An item is harder for one serving."),
                    },
                    name="VarianceParts",
                )
            ),
            "The variance of the score of one answer, by its source. null where a source was not varied.",
        ),
        "floor": about(null(NUMBER), "Scores of two runs by one serving differ by at most this with a chance of 95 %."),
    },
    name="NoiseFigures",
)
NOISE = Endpoint(
    "GET",
    "/noise",
    get_noise,
    "getNoise",
    "Get how much scores change when the same items are asked again, from finished jobs that asked the same.",
    answer=shape(
        {
            "noise": about(
                shape(
                    {
                        "suite": members.SUITE,
                        "servings": about(
                            array(
                                shape(
                                    {
                                        "model": members.MODEL,
                                        "provider": members.PROVIDER,
                                        "runs": about(
                                            array(
                                                shape(
                                                    {
                                                        "job_id": members.JOB_ID,
                                                        "repeats": members.REPEATS,
                                                        "score": about(NUMBER, "The mean score over the items."),
                                                    },
                                                    name="NoiseRun",
                                                )
                                            ),
                                            "Its jobs, oldest first.",
                                        ),
                                    },
                                    name="NoiseServing",
                                )
                            ),
                            "Where the model was asked.",
                        ),
                        "total": about(_FIGURES, "The figures of all tasks."),
                        "tasks": about(array(_FIGURES), "Those of each task. Empty for a single task."),
                        "words": about(array(STRING), "What the figures of all tasks say, in sentences."),
                        "notes": about(array(STRING), "Notes about the measurement, in sentences."),
                    },
                    name="Noise",
                ),
                "The noise.",
            )
        },
        name="NoiseAnswer",
    ),
    query=(
        Parameter(
            "job_ids",
            text(800),
            "One to twenty finished jobs of one suite, joined by commas. One alone must have several answers per item.",
            required=True,
        ),
    ),
    errors=(404, 504),
)
