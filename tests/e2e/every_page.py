"""Every page in every state, over a busy world: for tests that walk all pages, and for `make screenshots`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from services.gateway.access import tokens
from services.gateway.pages.compare.view import MOST
from services.gateway.pages.jobs import rating
from services.words import rubrics
from tests.gateway import experiment_boards, fake_datasets, fake_decisions, fake_owned, fake_stored
from tests.gateway.fake_data import HOSTILE, SUITES
from tests.gateway.fake_world import World, busy_world, spec
from tests.gateway.gateway_server import Running
from tests.gateway.oidc_provider import provider
from tests.gateway.test_access import with_tokens
from tests.gateway.test_pages_judges import agreed, judged, judged_pairs
from tests.nats_server import NatsServer
from tests.unit.words.test_rubrics import CORRECT, TIPS
from touchstone.v1 import (
    dataset_pb2,
    item_result_pb2,
    job_pb2,
    results_service_pb2,
    schedule_pb2,
    scheduler_service_pb2,
)
from touchstone.v1.rubric_pb2 import Rubric

REFUSED_KEY = "grok refused the key (invalid API key). Set XAI_API_KEY where the evaluator runs and restart it."


@dataclass(frozen=True)
class Place:
    """A page in one state. `status` is what it answers, `key` opens what belongs to the state."""

    name: str
    address: str
    status: int = 200
    key: str = ""


USERS_PLACES = (Place("settings-users", "/settings"), Place("queue-users", "/queue"))
"""Pages that differ where users have tokens, as an admin sees them."""
SIGN_IN = Place("sign-in", "/login?next=%2Fsettings")
PROVIDER_PLACES = (
    Place("sign-in-provider", "/login?next=%2Fsettings"),
    Place("sign-in-refused", "/login/oidc", 403),
    Place("sign-in-failed", "/login/callback", 400),
)
"""Pages where browsers log in with a provider that says of nobody a group with access."""


@asynccontextmanager
async def for_users(folder: Path) -> AsyncIterator[tuple[Running, str]]:
    """A gateway whose users have tokens, and an admin's session."""
    nats = NatsServer().start(folder)
    try:
        async with with_tokens(nats, busy_world()) as (gateway, nats_bus):
            text = await tokens.create(nats_bus, "m.keller", "admin", "laptop")
            await tokens.create(nats_bus, "a.lind", "user", "nightly runs", expires_days=30)
            answer = await gateway.client.post("/login", data={"token": text}, headers={"Origin": gateway.url})
            yield gateway, answer.cookies["touchstone"]
    finally:
        nats.stop()


@asynccontextmanager
async def for_strangers(folder: Path) -> AsyncIterator[Running]:
    """A gateway with such a provider."""
    nats = NatsServer().start(folder)
    try:
        async with (
            provider(person={"sub": "m.keller@subsidiary.example", "groups": ["visitors"]}) as issued,
            with_tokens(nats, oidc=issued.settings()) as (gateway, _),
        ):
            yield gateway
    finally:
        nats.stop()


def finished(world: World, *specs: job_pb2.JobSpec) -> list[str]:
    """Ids of completed jobs, one for each specification."""
    return [world.finish(world.start(world.add(one, "local").job_id).job_id).job_id for one in specs]


def dataset_with_runs(world: World, name: str, text: str) -> str:
    """An uploaded dataset of twelve rows with two completed runs."""
    lines = [
        {"custom_id": f"case-{n}", "prompt": f"{text} {n}", "reference": "A", "metadata": {"ward": f"w{n % 3}"}}
        for n in range(12)
    ]
    data = "\n".join(json.dumps(line) for line in lines).encode()
    held = fake_datasets.add(world, dataset_pb2.DatasetOptions(name=name, owner="local"), data).dataset_id
    work = job_pb2.DatasetWork(dataset_id=held, name=name)
    finished(
        world, *(job_pb2.JobSpec(endpoint="ollama", model=one, dataset=work) for one in ("gemma3:4b", "phi4-mini"))
    )
    return held


def _runs(world: World, dataset: str) -> list[str]:
    jobs = world.jobs.values()
    return [job.job_id for job in jobs if job.spec.dataset.dataset_id == dataset and job.finished_at.seconds]


def _judged(world: World, job_id: str, other: str) -> str:
    """Has two judges judge a job's answers, of which one has not finished, and a third compare them with another job's.
    Returns the first task."""
    job = world.jobs[job_id]
    first, second = judged(world, job), judged(world, job, CORRECT)
    scores = {"relevance": 4, "actionability": 2, "tone": 5}
    told = json.dumps({"reason": "The second tip repeats the first one.", **scores})
    answered, unparsed = item_result_pb2.OUTCOME_ANSWERED, item_result_pb2.OUTCOME_UNPARSED
    first.judgements.add(number=1, outcome=answered, scores=json.dumps(scores), response=told)
    first.judgements.add(number=2, outcome=unparsed, response=5 * HOSTILE)
    agreed(first)
    third = judged_pairs(world, job, world.jobs[other], 0.65)
    third.job.spec.model = "judge-of-pairs"
    third.judgements.add(number=2, outcome=answered, scores='{"better": "first"}', response=HOSTILE, other_first=True)
    second.job.state = job_pb2.Job.STATE_RUNNING
    second.job.spec.model, second.job.spec.endpoint = "claude-sonnet-4-20250514-thinking", "anthropic"
    return job.plan[0].task


def rated(world: World, job_id: str, rubric: Rubric, count: int, rater: str = "local") -> list[str]:
    """A person rates the first answers of the queue under a rubric. Returns how pages name these answers."""
    asked = results_service_pb2.ListUnratedRequest(job_id=job_id, rubric=rubric, page_size=count)
    given = [
        results_service_pb2.Rating(
            task=one.task, item=one.item, repeat=one.repeat, scores=_score(rubric, number), note="Clear." * (number % 2)
        )
        for number, one in enumerate(fake_stored.list_unrated(world, asked, rater).answers)
    ]
    sent = results_service_pb2.RateAnswersRequest(job_id=job_id, rubric=rubric, ratings=given)
    fake_stored.rate(world, sent, rater)
    return [rating.key_of(one) for one in given]


def _score(rubric: Rubric, number: int) -> str:
    return json.dumps(
        {
            one.name: one.choices[number % len(one.choices)].name if one.choices else one.lowest + number % 5
            for one in rubric.criteria
        }
    )


def odd_rubric() -> Rubric:
    """Long choices, a long scale, negative scores, hostile words."""
    criteria = [
        {
            "name": "whole",
            "choices": [{"name": one, "value": n / 2} for n, one in enumerate(("no", HOSTILE[:70], "y"))],
        },
        {"name": "share", "lowest": 0, "highest": 100, "description": HOSTILE},
        {
            "name": "change",
            "lowest": -2,
            "highest": 2,
            "examples": [{"answer": HOSTILE, "score": "-2", "why": HOSTILE}],
        },
    ]
    return rubrics.of_value({"version": "odd-v1", "instructions": HOSTILE, "criteria": criteria})


def _rating_places(world: World, job_id: str, small: str, unjudged: str) -> list[Place]:
    """Rating in its states: choosing a rubric, an answer of the queue, one that was rated, the end of the queue, and
    a job that people rated and no judge judged."""
    tips, odd, correct = rating.shipped(), odd_rubric(), rubrics.of_value(CORRECT)
    by = {name: f"/rate?rubric={rubrics.digest(one)}" for name, one in (("tips", tips), ("odd", odd), ("all", correct))}
    first, *_ = rated(world, job_id, tips, 12)
    rated(world, job_id, tips, 7, "m.keller")
    fake_stored.rate(world, results_service_pb2.RateAnswersRequest(job_id=job_id, rubric=odd), "m.keller")
    rated(world, small, correct, 500)
    by_judge, found = rubrics.of_value(TIPS), world.judges[job_id]
    people = found.people.add(rubric=by_judge, raters=2, answers=60, shared=20)
    for one in found.judges[0].agreement[1:]:
        people.criteria.add(criterion=one.metric, alpha=one.alpha)
    alone = world.judges.setdefault(unjudged, results_service_pb2.ListJudgesResponse()).people.add()
    alone.CopyFrom(people)
    return [
        Place("job-rated", f"/jobs/{unjudged}"),
        Place("rating-choose", f"/jobs/{job_id}/rate"),
        Place("rating", f"/jobs/{job_id}{by['tips']}"),
        Place("rating-again", f"/jobs/{job_id}{by['tips']}&answer={quote(first)}"),
        Place("rating-hostile", f"/jobs/{job_id}{by['odd']}"),
        Place("rating-done", f"/jobs/{small}{by['all']}"),
        Place("rating-agreement", f"/jobs/{job_id}/rate/agreement?rubric={rubrics.digest(by_judge)}"),
        Place("rating-unknown", f"/jobs/{job_id}/rate?rubric=nothing", 404),
    ]


def _experiments(world: World) -> list[Place]:
    """Experiments in all states, and the form that starts one."""
    experiment_boards.add(world, "tip-bench-2026-04-27")
    experiment_boards.add(world, "tips-without-scores", scored=False)
    experiment_boards.add(world, "tips-live", ("gemma3:4b", "phi4-mini", "qwen2.5:7b", "llama3.2:3b"), live=True)
    experiment_boards.odd(world)
    experiment_boards.large(world)
    return [
        Place("experiments", "/experiments"),
        Place("experiment", "/experiments/tip-bench-2026-04-27"),
        Place("experiment-without-scores", "/experiments/tips-without-scores?source=people"),
        Place("experiment-live", "/experiments/tips-live"),
        Place("experiment-hostile", f"/experiments/{experiment_boards.LONG}"),
        Place("experiment-large", "/experiments/large"),
        Place("experiment-unknown", "/experiments/none", 404),
        Place("experiment-new", "/experiments/new?model=ollama%7Cphi4-mini"),
    ]


def _scheduled(world: World) -> schedule_pb2.Schedule:
    """A schedule that has started decisions with every kind of end."""
    asked = scheduler_service_pb2.CreateScheduleRequest(
        cron="0 2 * * *", label="nightly", spec=spec("llama3.2:3b", "mmlu")
    )
    made = fake_owned.add_schedule(world, asked, "m.keller")
    made.spec.deciding.error = 0.05
    made.candidates.add().CopyFrom(spec("qwen2.5:7b", "mmlu"))
    decided = [
        fake_decisions.add(world, (0.55, 0.75), seed=2),
        fake_decisions.add(world, (0.7, 0.71), seed=3),
        fake_decisions.begun(world),
    ]
    for one in decided:
        world.jobs[one.decision_id].spec.schedule_id = made.schedule_id
    made.last_job_id = decided[-1].decision_id
    made.last_problem = f"Its last decision, {made.last_job_id}, has not ended yet."
    return made


def _decisions(world: World) -> list[Place]:
    """Decisions with every verdict, one that runs, one of which nothing is known, and the form."""
    found = {
        "better": fake_decisions.add(world),
        "worse": fake_decisions.add(world, (0.8, 0.55), items=14_042, suite="mmlu"),
        "equivalent": fake_decisions.add(world, (0.9, 0.9), items=1600, margin=0.05),
        "no-difference": fake_decisions.add(world, (0.7, 0.71), models=("phi4-mini", "phi4-mini")),
        "live": fake_decisions.add(world, (0.6, 0.64), margin=0.02, upto=150),
        "begun": fake_decisions.begun(world),
        "failed": fake_decisions.begun(world, ("llama3.2:3b", "grok-4-fast")),
        "hostile": fake_decisions.add(world, models=(HOSTILE, f"{HOSTILE} 2")),
        "baselines": fake_decisions.add(world, (0.5, 0.7), endpoint="baselines"),
    }
    shares = {"llama3.2:3b": 0.5, "gemma3:4b": 0.62, "qwen2.5:7b": 0.85, "phi4-mini": 0.6, "mistral:latest": 0.55}
    found["race"] = fake_decisions.add_race(world, shares)
    found["race-live"] = fake_decisions.add_race(world, shares | {"qwen2.5:14b": 0.82}, upto=120)
    found["race-begun"] = fake_decisions.begun(world, [f"vendor/model-{n}:70b-instruct" for n in range(20)])
    ended = world.jobs[found["failed"].decision_id]
    world.finish(ended.spec.deciding.against_job_id, job_pb2.Job.STATE_FAILED, REFUSED_KEY)
    fake_decisions.stop(world, ended.job_id, "Stopped: the other side of its decision has ended.")
    return [
        Place("decisions", "/decisions"),
        Place("decisions-of-a-schedule", f"/decisions?schedule={_scheduled(world).schedule_id}"),
        *(Place(f"decision-{name}", f"/decisions/{one.decision_id}") for name, one in found.items()),
        Place("decision-unknown", "/decisions/00000000-0000-4000-8000-000000000000", 404),
        Place("decision-new", "/decisions/new?candidate=ollama%7Cphi4-mini&work=glue"),
        Place("decision-new-race", "/decisions/new?further=ollama%7Cphi4-mini&further=ollama%7Cgemma3%3A4b&work=glue"),
    ]


def places() -> tuple[World, list[Place]]:
    """The world, and its pages."""
    world = busy_world()
    world.suites = (*SUITES, "mmlu")
    ranked = [entry for entry in world.boards["glue"] if entry.rank]
    for entry in ranked:
        entry.rank_low, entry.rank_high = max(1, entry.rank - 1), min(len(ranked), entry.rank + 2)
    compared = finished(world, *(spec(model, limit=5) for model in ("alpha", "beta", "gamma")))
    many = finished(world, *(spec(f"vendor/model-{n}:70b-instruct", limit=5) for n in range(MOST)))
    alike = finished(world, *(spec(f"same-{n}", limit=5) for n in range(2)))
    twisted, hostile = finished(world, spec("twisted", limit=5), spec(HOSTILE, limit=5))
    refused = world.start(world.add(spec("grok-4-fast", endpoint="grok"), "local").job_id)
    world.finish(refused.job_id, job_pb2.Job.STATE_FAILED, REFUSED_KEY)
    triage = dataset_with_runs(world, "triage.jsonl", "Which ward?")
    odd = dataset_with_runs(world, f"{HOSTILE[:60]}.jsonl", HOSTILE)
    rows = [
        job.job_id for job in world.jobs.values() if job.spec.dataset.dataset_id == triage and job.finished_at.seconds
    ]
    odd_rows = [job.job_id for job in world.jobs.values() if job.spec.dataset.dataset_id == odd]
    by_state: dict[str, str] = {}
    for job in world.jobs.values():
        state = "incomplete" if job.incomplete else job_pb2.Job.State.Name(job.state).removeprefix("STATE_").lower()
        by_state.setdefault(state, job.job_id)
    whole, second = by_state["completed"], compared[0]
    asked_of = _judged(world, compared[1], compared[0])
    mmlu = finished(world, *(spec(model, "mmlu", limit=5) for model in ("alpha", "beta")))
    return world, [
        Place("overview", "/overview?suite=glue"),
        Place("overview-all", "/overview"),
        Place("overview-empty", "/overview?suite=demo"),
        Place("run", "/run?endpoint=ollama&suite=glue&model=qwen2.5%3A7b&limit=400"),
        Place("run-baselines", "/run?endpoint=baselines&suite=demo"),
        Place("run-refused-key", "/run?endpoint=grok&suite=glue"),
        Place("run-mmlu", "/run?endpoint=ollama&suite=mmlu&model=qwen2.5%3A7b&limit=5"),
        Place("history", "/jobs"),
        Place("history-nothing", "/jobs?query=nothing-is-called-this"),
        Place("leaderboard", "/leaderboard?suite=glue"),
        Place("leaderboard-mmlu", "/leaderboard?suite=mmlu"),
        Place("leaderboard-empty", "/leaderboard?suite=demo"),
        Place("leaderboard-unknown", "/leaderboard?suite=nope", 400),
        Place("queue", "/queue"),
        *_experiments(world),
        *_decisions(world),
        Place("jump", f"/jump?{urlencode({'q': HOSTILE[:12]})}"),
        Place("compare-choose", "/compare"),
        Place("compare", f"/compare?jobs={compared[0]},{compared[1]}"),
        Place("compare-three", f"/compare?jobs={','.join(compared)}"),
        Place("compare-many", f"/compare?jobs={','.join(many)}"),
        Place("compare-no-difference", f"/compare?jobs={','.join(alike)}"),
        Place("compare-not-comparable", f"/compare?jobs={compared[0]},{twisted}"),
        Place("compare-hostile", f"/compare?jobs={compared[0]},{hostile}"),
        Place("report-comparison", f"/compare/report.html?jobs={compared[0]},{compared[1]}"),
        *(Place(f"job-{state}", f"/jobs/{job_id}") for state, job_id in by_state.items()),
        Place("job-refused-key", f"/jobs/{refused.job_id}"),
        Place("job-hostile", f"/jobs/{hostile}?open={world.jobs[hostile].plan[0].task}:1"),
        Place("job-item", f"/jobs/{whole}/items/{world.jobs[whole].plan[0].task}/0"),
        Place("job-judged", f"/jobs/{compared[1]}?open={asked_of}%3A1"),
        Place("job-judge", f"/jobs/{compared[1]}/judge?by=rubric"),
        Place("job-judge-pairs", f"/jobs/{compared[1]}/judge?against={compared[0]}"),
        *_rating_places(world, compared[1], *rows),
        Place("job-log", f"/jobs/{whole}/log"),
        Place("job-unknown", "/jobs/00000000-0000-4000-8000-000000000000", 404),
        Place("report-job", f"/jobs/{whole}/report.html"),
        Place("datasets", "/datasets"),
        Place("dataset", f"/datasets/{triage}"),
        Place("dataset-hostile", f"/datasets/{odd}"),
        Place("dataset-job", f"/jobs/{rows[0]}"),
        Place("dataset-job-hostile", f"/jobs/{odd_rows[0]}"),
        Place("side-by-side", f"/side-by-side?jobs={','.join(rows)}"),
        Place("side-by-side-suite", f"/side-by-side?jobs={whole},{second}"),
        Place("side-by-side-judging", f"/side-by-side?jobs={','.join(rows)}&row=rows%3A3&blind=1"),
        Place("dataset-runs", "/datasets/runs"),
        Place("settings", "/settings"),
        Place("job-mmlu", f"/jobs/{mmlu[0]}"),
        Place("compare-mmlu", f"/compare?jobs={','.join(mmlu)}"),
        Place("report-mmlu", f"/jobs/{mmlu[0]}/report.html"),
        Place("palette", "/queue", key="Control+k"),
        Place("shortcuts", "/queue", key="?"),
    ]
