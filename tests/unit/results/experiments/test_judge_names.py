"""What judges of an experiment are called."""

from __future__ import annotations

import json

from services.experiments import reading
from services.results.experiments.judge_names import JudgeNames
from services.scheduler.admission import judging_rules
from services.words import rubrics
from tests.unit.experiments.definitions import small
from touchstone.v1 import job_pb2


def _judge(model: str = "j", **sampling: object) -> job_pb2.Judge:
    return job_pb2.Judge(endpoint="e", model=model, sampling=job_pb2.Sampling(**sampling))  # type: ignore[arg-type]


def test_the_first_has_the_bare_name_and_others_their_parameters() -> None:
    names = JudgeNames()
    asked = [_judge(max_tokens=9), _judge("k"), _judge(), _judge(max_tokens=9), _judge(temperature=0.5, seed=1)]
    assert [names.of(one) for one in asked] == [
        *("e/j", "e/k", "e/j (no parameters)", "e/j", "e/j (temperature=0.5, seed=1)")
    ]
    own = names.of(_judge(extra_json=json.dumps({"think": True})))
    assert own.startswith("e/j (custom_config=")
    assert own != names.of(_judge(extra_json=json.dumps({"think": False})))


def test_a_judge_and_the_job_in_which_it_judges_have_the_same_name() -> None:
    rubric = rubrics.written(reading.read(small()).rubric)
    judge = _judge(seed=3)
    job = job_pb2.JobSpec(endpoint="e", model="j", sampling=judge.sampling)
    job.dataset.scoring.rubric = rubric
    judging_rules.ask_for_form(job, "openai")
    assert job.sampling != judge.sampling
    names = JudgeNames()
    assert names.of(judge) == names.of(job) == "e/j"
