"""What of modes, shots, repeats and open suites is refused before anything is queued."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from services import further_fields
from services.errors import InvalidRequestError
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers import anthropic_wire, gemini_wire
from services.evaluator.providers.protocol.capabilities import of_protocol
from services.scheduler.admission.validation import validate
from services.scheduler.jobs.fleet import Fleet
from services.scheduler.settings import Limits
from services.words.endpoints import LABELS
from tests.unit.scheduler.fakes import ALICE, World, evaluator
from tests.unit.scheduler.fakes import spec as demo_spec
from touchstone.v1 import endpoint_pb2, job_pb2, scoring_pb2, suite_pb2


async def test_a_known_endpoint_without_evaluators_queues_and_an_unknown_one_is_refused() -> None:
    world = World()
    world.fleet.hear(evaluator(), world.time)
    world.time += 60
    await world.start()
    job = await world.create()
    assert world.state(job) == "pending"
    assert "an evaluator that serves stub" in world.desk.get(job).progress.current_step
    with pytest.raises(InvalidRequestError, match="Endpoints: stub"):
        await world.create(endpoint="nowhere")
    world.fleet.hear(evaluator(), world.time)
    world.registry.wake.set()
    await world.settle()
    assert world.state(job) == "planning"
    await world.stop()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda s: s.sampling.__setattr__("temperature", 2.1), "spec.sampling.temperature"),
        (lambda s: s.sampling.__setattr__("temperature", float("nan")), "spec.sampling.temperature"),
        (lambda s: s.sampling.__setattr__("top_k", 101), "spec.sampling.top_k"),
        (lambda s: s.sampling.__setattr__("max_tokens", 0), "spec.sampling.max_tokens"),
        (lambda s: s.__setattr__("model", ""), "spec.model"),
        (lambda s: s.suite.__setattr__("suite", "nope"), "spec.suite.suite"),
        (lambda s: s.suite.tasks.append("three"), "spec.suite.tasks"),
        (lambda s: s.suite.__setattr__("shots", 1), "spec.suite.shots"),
        (lambda s: s.suite.__setattr__("limit", -1), "spec.suite.limit"),
        (lambda s: s.__setattr__("mode", 2), "spec.mode"),
        (lambda s: s.__setattr__("time_limit_s", 10_801), "spec.time_limit_s"),
        (lambda s: s.ClearField("suite"), "spec.work"),
    ],
)
async def test_a_wrong_spec_is_refused_with_the_field(world: World, change, field) -> None:  # type: ignore[no-untyped-def]
    wrong = demo_spec()
    change(wrong)
    with pytest.raises(InvalidRequestError) as refused:
        await world.desk.create(ALICE, "", wrong)
    assert refused.value.field == field
    assert world.store.records == {}


def test_a_live_evaluators_suites_count_before_an_old_ones() -> None:
    world_fleet = Fleet(10)
    old, new = evaluator("old"), evaluator("new")
    del old.suites[0].tasks[1:]
    world_fleet.hear(old, 0)
    world_fleet.hear(new, 100)
    assert [task.task for task in world_fleet.suite("demo", 101).tasks] == ["one", "two"]


NOW = 100.0
LIMITS = Limits(job_time_s=3600)
BOTH = [suite_pb2.MODE_GENERATE, suite_pb2.MODE_LOGLIKELIHOOD]


def fleet(kind: str = "openai", capabilities: endpoint_pb2.Capabilities | None = None) -> Fleet:
    announced = evaluator()
    announced.endpoints[0].kind = kind
    announced.endpoints[0].models[0].capabilities.MergeFrom(capabilities or endpoint_pb2.Capabilities())
    announced.endpoints[0].capabilities.MergeFrom(of_protocol(Endpoint("stub", kind)))
    announced.suites.append(
        suite_pb2.Suite(suite="exam", title="Exam", tasks=[suite_pb2.TaskInfo(task="a", modes=BOTH, max_shots=5)])
    )
    announced.suites.append(suite_pb2.Suite(suite="lm_eval", title="lm_eval", open=True))
    made = Fleet(10)
    made.hear(announced, NOW)
    return made


def spec(mode: suite_pb2.Mode = suite_pb2.MODE_GENERATE, **work: object) -> job_pb2.JobSpec:
    suite = job_pb2.SuiteWork(**({"suite": "exam"} | work))  # type: ignore[arg-type]
    return job_pb2.JobSpec(endpoint="stub", model="m", mode=mode, suite=suite)


def field_of(wanted: job_pb2.JobSpec, known: Fleet) -> str:
    with pytest.raises(InvalidRequestError) as refused:
        validate(wanted, known, LIMITS, NOW)
    return refused.value.field


@pytest.mark.parametrize("repeats", [0, 1, 64])
def test_up_to_sixty_four_answers_an_item_are_taken(repeats: int) -> None:
    assert validate(spec(repeats=repeats), fleet(), LIMITS, NOW).suite.repeats == repeats


def test_more_answers_than_that_or_fewer_than_none_are_refused() -> None:
    assert {field_of(spec(repeats=n), fleet()) for n in (-1, 65)} == {"spec.suite.repeats"}


def test_a_reading_is_for_answers_that_are_read() -> None:
    plain, open_task = spec(), spec(suite="lm_eval:a")
    scored = spec(suite_pb2.MODE_LOGLIKELIHOOD)
    for wanted in (plain, open_task, scored):
        wanted.reading = scoring_pb2.READING_STRICT
    assert validate(plain, fleet(), LIMITS, NOW).reading == scoring_pb2.READING_STRICT
    assert {field_of(open_task, fleet()), field_of(scored, fleet())} == {"spec.reading"}


def test_what_only_generation_has_is_refused_for_log_likelihoods() -> None:
    warm, streamed = spec(suite_pb2.MODE_LOGLIKELIHOOD), spec(suite_pb2.MODE_LOGLIKELIHOOD)
    warm.sampling.temperature = 0.7
    streamed.stream = True
    assert field_of(warm, fleet()) == "spec.sampling.temperature"
    assert field_of(streamed, fleet()) == "spec.stream"


def test_log_likelihoods_are_asked_for_once() -> None:
    assert field_of(spec(suite_pb2.MODE_LOGLIKELIHOOD, repeats=2), fleet()) == "spec.suite.repeats"


def test_shots_go_as_far_as_the_task_has_examples() -> None:
    validate(spec(shots=5), fleet(), LIMITS, NOW)
    assert field_of(spec(shots=6), fleet()) == "spec.suite.shots"


def test_a_suite_is_refused_only_when_none_of_the_tasks_asked_for_can_run_as_asked() -> None:
    known = fleet()
    written = suite_pb2.TaskInfo(task="b", title="B", modes=BOTH[:1], max_shots=0)
    heard = evaluator()
    heard.evaluator = "other"
    heard.suites.append(
        suite_pb2.Suite(suite="mixed", tasks=[suite_pb2.TaskInfo(task="a", modes=BOTH, max_shots=5), written])
    )
    known.hear(heard, NOW)
    for wanted in (
        spec(BOTH[1], suite="mixed"),
        spec(suite="mixed", shots=5),
        spec(suite="mixed", tasks=["b", "a"], shots=1),
    ):
        validate(wanted, known, LIMITS, NOW)
    assert field_of(spec(suite="mixed", shots=6), known) == "spec.suite.shots"
    assert field_of(spec(suite="mixed", tasks=["b"], shots=1), known) == "spec.suite.shots"
    assert field_of(spec(suite="mixed", shots=-1), known) == "spec.suite.shots"
    with pytest.raises(InvalidRequestError, match="B cannot run in loglikelihood mode"):
        validate(spec(BOTH[1], suite="mixed", tasks=["b"]), known, LIMITS, NOW)


@pytest.mark.parametrize("kind", ["baseline", "ollama", "gemini", "anthropic", "grok", "http"])
def test_a_protocol_without_log_likelihoods_is_refused_before_any_call(kind: str) -> None:
    assert field_of(spec(suite_pb2.MODE_LOGLIKELIHOOD), fleet(kind)) == "spec.mode"
    validate(spec(), fleet(kind), LIMITS, NOW)


@pytest.mark.parametrize("kind", ["openai", "vllm", "engine"])
def test_one_that_has_them_is_taken_unless_the_model_is_known_not_to(kind: str) -> None:
    wanted = spec(suite_pb2.MODE_LOGLIKELIHOOD)
    validate(wanted, fleet(kind), LIMITS, NOW)
    validate(wanted, fleet(kind, endpoint_pb2.Capabilities(loglikelihood=True)), LIMITS, NOW)
    assert field_of(wanted, fleet(kind, endpoint_pb2.Capabilities(loglikelihood=False))) == "spec.mode"


def test_an_open_suite_takes_any_task_by_its_form() -> None:
    for task in ("hellaswag", "arc_easy", "mmlu.v2-x"):
        validate(spec(suite=f"lm_eval:{task}", shots=3), fleet(), LIMITS, NOW)
    wrong = ["lm_eval", "lm_eval:", "lm_eval:a/b", "lm_eval:../x", "lm_eval:a b", "lm_eval:" + "x" * 101, "exam:a"]
    assert {field_of(spec(suite=name), fleet()) for name in wrong} == {"spec.suite.suite"}
    assert field_of(spec(suite="lm_eval:hellaswag", tasks=["other"]), fleet()) == "spec.suite.tasks"
    assert field_of(spec(suite="lm_eval:hellaswag", shots=101), fleet()) == "spec.suite.shots"


def test_the_reserved_endpoint_of_stored_answers_is_no_endpoint_of_jobs() -> None:
    wanted = spec()
    wanted.endpoint = "stored"
    assert field_of(wanted, fleet()) == "spec.endpoint"


def test_limits_are_told_in_whole_numbers() -> None:
    wanted = spec()
    wanted.sampling.max_tokens = 1_000_001
    with pytest.raises(InvalidRequestError, match=r"spec\.sampling\.max_tokens must be between 1 and 1,000,000\."):
        validate(wanted, fleet(), LIMITS, NOW)


def refusal(wanted: job_pb2.JobSpec, endpoint: endpoint_pb2.Endpoint) -> tuple[str, str]:
    """The sentence and the field; empty for a job that is taken."""
    announced = evaluator()
    announced.endpoints[0].MergeFrom(endpoint)
    known = Fleet(10)
    known.hear(announced, NOW)
    try:
        validate(wanted, known, LIMITS, NOW)
    except InvalidRequestError as error:
        return error.message, error.field
    return "", ""


LISTED = endpoint_pb2.Endpoint(refreshed_at=Timestamp(seconds=1))
_STATE = endpoint_pb2.Endpoint.State


def test_a_model_that_a_reachable_endpoint_does_not_list_is_refused() -> None:
    wanted = spec(suite="demo")
    wanted.model = "mm"
    assert refusal(wanted, LISTED) == ("stub does not have model mm. Did you mean m?", "spec.model")
    pulled = endpoint_pb2.Endpoint(kind="ollama", models=[endpoint_pb2.Model(model="mm:latest")])
    pulled.MergeFrom(LISTED)
    assert refusal(wanted, pulled) == ("", "")
    for state in (_STATE.STATE_DOWN, _STATE.STATE_ABSENT):
        # It may come back with another list.
        gone = endpoint_pb2.Endpoint(state=state)
        gone.MergeFrom(LISTED)
        assert refusal(wanted, gone) == ("", "")
    assert refusal(wanted, endpoint_pb2.Endpoint()) == ("", "")


def test_an_endpoint_without_its_key_is_refused_with_the_documented_sentence() -> None:
    wanted = spec(suite="demo")
    without = endpoint_pb2.Endpoint(state=_STATE.STATE_NOT_CONFIGURED)
    assert refusal(wanted, without) == ("AI provider error: API key not configured for stub", "spec.endpoint")


def test_a_parameter_that_the_kind_has_no_field_for_is_refused() -> None:
    wanted = spec(suite="demo")
    wanted.sampling.context_length = 4096
    assert refusal(wanted, endpoint_pb2.Endpoint(kind="anthropic")) == (
        "stub does not take sampling.context_length. Leave it out of the job's parameters.",
        "spec.sampling.context_length",
    )
    assert refusal(wanted, endpoint_pb2.Endpoint(kind="ollama")) == ("", "")
    assert refusal(wanted, endpoint_pb2.Endpoint(kind="baseline", baseline=True)) == ("", "")


_SAME = {"tools": [], "response_format": {"type": "text"}, "logprobs": False, "x_of_tomorrow": 1}
"""Further fields that each kind takes."""
TAKEN: dict[str, dict[str, Any]] = {
    "anthropic": {"thinking": {"type": "adaptive"}, "stop_sequences": ["."], "metadata": {}, "service_tier": "auto"},
    "gemini": {
        "thinkingConfig": {"thinkingBudget": 1},
        "frequency_penalty": 1,
        "safetySettings": [],
        "stopSequences": [],
    },
    "ollama": {"options": {"mirostat": 1}, "think": True, "keep_alive": "5m", "format": "json", "logprobs": True},
    "openai": {"n": 1, "reasoning_effort": "low", "num_ctx": 9, "thinking": {}, "logit_bias": {}, "logprobs": True},
    "vllm": {"chat_template_kwargs": {}, "guided_json": {}, "repetition_penalty": 1, "logit_bias": {}},
    "engine": {"chat_template_kwargs": {}, "repeat_penalty": 1, "n": 1},
    "grok": {"reasoning_effort": "low", "search_parameters": {}, "frequency_penalty": 1, "n": 1},
    "http": {"n": 2, "model": "x", "options": {}, "anything": None},
    "baseline": {"n": 2, "options": {}},
}
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "anthropic": (
        {"n": 2, "seed": 1, "min_p": 0, "frequency_penalty": 0, "logit_bias": {}, "options": {}, "logprobs": True},
        {"system": "Be brief.", "messages": [], "stream": True},
    ),
    "gemini": (
        {"n": 1, "max_tokens": 9, "logit_bias": {}, "options": {}, "reasoning_effort": "low", "thinking": {}},
        {"contents": [], "systemInstruction": {}, "candidateCount": 2},
    ),
    "ollama": (
        {"n": 1, "max_tokens": 9, "frequency_penalty": 0, "reasoning_effort": "low", "thinkingConfig": {}},
        {"truncate": True, "model": "x"},
    ),
    "openai": ({}, {"n": 2, "stream": True}),
    "vllm": ({"options": {}, "num_ctx": 9, "thinkingBudget": 1}, {"n": 3}),
    "engine": ({"keep_alive": 1, "generationConfig": {}}, {"n": True, "model": "x"}),
    "grok": ({"top_k": 1, "min_p": 0, "options": {}, "chat_template_kwargs": {}}, {"n": 2, "input": ""}),
    "http": ({}, {}),
    "baseline": ({}, {}),
}
"""What the kind never takes; what Touchstone sets, or what must be one answer."""
WRITTEN = {"anthropic": anthropic_wire.WRITTEN, "gemini": gemini_wire.WRITTEN}


@pytest.mark.parametrize("kind", LABELS)
def test_a_further_field_that_the_kind_never_takes_is_refused_by_its_name(kind: str) -> None:
    def said(values: dict[str, Any]) -> str:
        wanted = spec(suite="demo")
        further_fields.write(wanted.sampling, values)
        sentence, field = refusal(wanted, endpoint_pb2.Endpoint(kind=kind, baseline=kind == "baseline"))
        assert field == ("spec.sampling.extra_json" if sentence else "")
        return sentence

    assert said(_SAME | TAKEN[kind]) == ""
    foreign, own = REFUSED[kind]
    for name, value in foreign.items():
        path = f"sampling.extra_json.{name}"
        assert said({"x": 1, name: value}) == f"stub does not take {path}. Leave it out of the job's parameters."
    for name, value in own.items():
        assert said({name: value}).startswith(f"sampling.extra_json.{name} ")
    for name in WRITTEN.get(kind, ()):
        assert said({name: None}).startswith(f"sampling.extra_json.{name} is set by Touchstone itself")


def test_a_job_that_takes_stored_answers_keeps_their_further_fields() -> None:
    wanted = spec(suite="demo")
    further_fields.write(wanted.sampling, {"n": 2})
    wanted.reuse.job_id = "j1"
    assert refusal(wanted, endpoint_pb2.Endpoint(kind="anthropic"))[1] != "spec.sampling.extra_json"
