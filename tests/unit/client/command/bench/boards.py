"""An experiment of two models and two prompts, as the services give it."""

from __future__ import annotations

from services.experiments import reading
from tests.unit.client.fakes import JOB, OTHER, dataset_job
from touchstone.v1 import results_service_pb2 as pb

NAME = "tip-bench"
JOBS = {"one": JOB, "two": OTHER}
PROMPTS = ("v1", "v2-mentor")


def interval(value: float, around: float = 0.1, n: int = 12) -> pb.Interval:
    return pb.Interval(value=value, low=value - around, high=value + around, n=n)


def experiment(state: str = "COMPLETED") -> pb.Experiment:
    jobs = [dataset_job(job_id, model, state) for model, job_id in JOBS.items()]
    return pb.Experiment(
        name=NAME, prompts=PROMPTS, scenarios=12, repeats=1, rubric=reading.shipped_rubric(), jobs=jobs
    )


def board() -> pb.GetExperimentResponse:
    """The first model is first with one of two prompts; one row has no scores."""
    made = pb.GetExperimentResponse(
        experiment=experiment(), source=pb.GetExperimentRequest.SOURCE_JUDGE, judge="left/judge", judges=["left/judge"]
    )
    scores = {("one", "v1"): 0.8, ("two", "v2-mentor"): 0.7125, ("one", "v2-mentor"): 0.6}
    for rank, ((model, prompt), score) in enumerate(scores.items(), start=1):
        row = made.rows.add(
            job_id=JOBS[model], endpoint="left", model=model, prompt=prompt, rank=rank, rank_low=1, rank_high=3,
            rows=12, answered=12, scored=11, judge_failures=1, latency_s=0.5, composite=interval(score),
        )  # fmt: skip
        for name in ("relevance", "actionability", "tone"):
            row.criteria.add(criterion=name, score=interval(0.75))
    made.rows[0].diversity.CopyFrom(interval(0.5))
    made.rows[0].cost_usd = 0.25
    made.rows[1].to_first.CopyFrom(pb.PairedDifference(difference=interval(-0.0875), p_value=0.03))
    made.rows.add(job_id=JOBS["two"], endpoint="left", model="two", prompt="v1", rows=12, errors=12)
    mean = interval(0.7)
    made.models.add(
        job_id=JOB, endpoint="left", model="one", mean=mean, best_prompt="v1", best=0.8, worst_prompt="v2-mentor",
        worst=0.6,
    )  # fmt: skip
    made.models.add(
        job_id=OTHER, endpoint="left", model="two", mean=interval(0.65), best_prompt="v2-mentor", best=0.7125,
        worst_prompt="v1", worst=0.6,
    )  # fmt: skip
    made.prompts_with_same_first, made.prompts_compared = 1, 2
    return made


def runs() -> list[pb.ExperimentRun]:
    """Three answers of each model to each prompt."""
    return [
        pb.ExperimentRun(
            job_id=job_id,
            endpoint="left",
            model=model,
            prompt=prompt,
            scenario=f"s-{number:04}",
            number=1,
            task="rows",
            item=3 * PROMPTS.index(prompt) + number,
            outcome="OUTCOME_ANSWERED",
            answer=f"Tip {number}",
        )
        for model, job_id in JOBS.items()
        for prompt in PROMPTS
        for number in range(3)
    ]


def unrated(job_id: str) -> pb.ListUnratedResponse:
    """The answers of one job in the order in which people rate them."""
    answers = [
        pb.AnswerToRate(task=run.task, item=run.item, prompt=f"Tips for {run.scenario}?", answer=run.answer)
        for run in runs()
        if run.job_id == job_id
    ]
    return pb.ListUnratedResponse(answers=answers[::-1], unrated=len(answers))
