"""Two answers have one identity only when they answer the same question."""

from __future__ import annotations

import dataclasses
import json
import timeit
from itertools import permutations

import pytest

from services import further_fields
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.engine_options import EngineModel, EngineOptions
from services.evaluator.endpoints.http_options import HttpOptions
from services.evaluator.endpoints.jsonpath import JsonPath
from services.evaluator.items.task import Item, Message
from services.evaluator.listing.identity import Identity, asked_with, setup
from services.evaluator.providers.protocol.provider import ProviderError
from touchstone.v1 import job_pb2, suite_pb2
from touchstone.v1.endpoint_pb2 import Capabilities

ITEM = Item(3, (Message("user", "Is it so?"),), "yes", "hash", "prompt-hash", context="It is", choices=(" so", " not"))
NOTHING = Capabilities()


def spec(**changes: object) -> job_pb2.JobSpec:
    made = job_pb2.JobSpec(endpoint="stub", model="m", suite=job_pb2.SuiteWork(suite="demo"))
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def of(made: job_pb2.JobSpec | None = None, item: Item = ITEM, repeat: int = 0, digest: str = "sha256:a") -> str:
    return Identity(made or spec(), digest, "openai", NOTHING)(item, repeat)


def test_equal_requests_have_one_identity_of_thirty_two_digits() -> None:
    assert of() == of()
    assert len(of()) == 32
    assert set(of()) <= set("0123456789abcdef")
    streamed, urgent = spec(stream=True), spec(priority=job_pb2.PRIORITY_LOW, project_id=7)
    sampled = spec()
    sampled.suite.limit = 10
    assert of(streamed) == of(urgent) == of(sampled) == of()


def test_whatever_could_change_the_answer_changes_the_identity() -> None:
    warm, effort, scoring = spec(), spec(), spec(mode=suite_pb2.MODE_LOGLIKELIHOOD)
    warm.sampling.temperature = 0.7
    further_fields.write(effort.sampling, {"reasoning_effort": "low"})
    others = [
        of(spec(endpoint="other")),
        of(spec(model="other")),
        of(digest="sha256:b"),
        of(warm),
        of(effort),
        of(scoring),
        of(repeat=1),
        of(item=dataclasses.replace(ITEM, messages=(Message("user", "Is it?"),))),
        of(item=dataclasses.replace(ITEM, messages=(Message("system", "Is it so?"),))),
        of(item=dataclasses.replace(ITEM, messages=(Message("user", "Is it"), Message("user", " so?")))),
        of(item=dataclasses.replace(ITEM, stop=("\n",))),
    ]
    assert len({of(), *others}) == len(others) + 1


def asking(sampling: job_pb2.Sampling) -> job_pb2.JobSpec:
    made = spec()
    made.sampling.CopyFrom(sampling)
    return made


def stored(text: str) -> job_pb2.Sampling:
    """Further fields as versions up to 0.1 kept them."""
    made = job_pb2.Sampling()
    made.extra.update(json.loads(text))
    return made


def test_requests_that_differ_in_the_order_of_a_schemas_names_alone_differ() -> None:
    schemas = [{key: {"minimum": 1.0} for key in keys} for keys in permutations(("a", "b"))]
    orders = [json.dumps({"format": schema, "user": "u"}) for schema in schemas]
    found = [of(asking(job_pb2.Sampling(extra_json=text))) for text in orders]
    assert len({*found}) == 2
    turned = json.dumps({"user": "u", "format": schemas[0]})
    assert of(asking(job_pb2.Sampling(extra_json=turned))) == found[0], "fields of the request have no order"
    # In which order an earlier version asked is not known.
    assert not {*found} & {of(asking(stored(text))) for text in orders}


@pytest.mark.parametrize("text", ['{"reasoning_effort":"low"}', '{"seed":5,"min_p":0.5}', '{"options":{"min_p":1}}'])
def test_answers_of_earlier_versions_are_found_where_there_is_no_order(text: str) -> None:
    assert of(asking(job_pb2.Sampling(extra_json=text))) == of(asking(stored(text)))


def test_identities_that_earlier_versions_stored_are_the_same() -> None:
    sampling = stored('{"format":{"reasoning":{"minimum":1},"answer":[1,{"b":2,"a":0.5}]},"seed":5}')
    assert of() == "dea77860c2f3620cc24635700fb13eb8"
    assert of(asking(sampling)) == "0cee45dc759fba9192d0c0b9a43aa87e"


def test_what_the_endpoints_file_says_of_serving_and_asking_counts() -> None:
    def identity(endpoint: Endpoint) -> str:
        return Identity(spec(), "sha256:a", endpoint.kind, NOTHING, setup(endpoint, "m"))(ITEM, 0)

    def engine(*args: str) -> Endpoint:
        options = EngineOptions(
            ("serve", "--port", "{port}"), (EngineModel("m", "/m", args=args), EngineModel("n", "/n"))
        )
        return Endpoint("stub", "engine", engine=options)

    def application(question: str) -> Endpoint:
        options = HttpOptions({"q": question}, JsonPath.parse("$.a"))
        return Endpoint("stub", "http", http=options)

    served = [engine(), engine("--quantization", "fp8"), application("{prompt}"), application("Briefly: {prompt}")]
    plain = [Endpoint("stub", "openai"), Endpoint("stub", "vllm")]
    assert len({identity(endpoint) for endpoint in (*served, *plain)}) == 6
    assert identity(engine("--a")) == identity(engine("--a"))


def test_in_log_likelihood_mode_the_continuations_count_and_sampling_does_not() -> None:
    scoring = spec(mode=suite_pb2.MODE_LOGLIKELIHOOD)
    warm = spec(mode=suite_pb2.MODE_LOGLIKELIHOOD)
    warm.sampling.temperature = 0.7
    assert of(scoring) == of(warm)
    assert of(scoring) != of(scoring, dataclasses.replace(ITEM, choices=(" so", " never")))
    assert of(scoring) != of(scoring, dataclasses.replace(ITEM, choices=(" so not",)))


def test_texts_do_not_run_into_each_other() -> None:
    one = dataclasses.replace(ITEM, messages=(Message("user", "a"), Message("user", "4:userb")))
    other = dataclasses.replace(ITEM, messages=(Message("user", "a4:user"), Message("user", "b")))
    assert of(item=one) != of(item=other)


def test_a_stop_sequence_that_is_not_sent_does_not_count() -> None:
    thinking = Identity(spec(), "", "openai", Capabilities(reasoning=True))
    assert thinking(ITEM, 0) == thinking(dataclasses.replace(ITEM, stop=("\n",)), 0)


def test_repeats_are_asked_with_seeds_of_their_own() -> None:
    seeded = spec()
    seeded.sampling.seed = 5
    seeded.suite.repeats = 3
    assert [asked_with(seeded, "openai", NOTHING, repeat).json for repeat in range(3)] == [
        '{"seed":5}',
        '{"seed":6}',
        '{"seed":7}',
    ]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("openai", '{"temperature":0}'), ("baseline", "{}"), ("http", "{}"), ("vllm", '{"temperature":0}')],
)
def test_what_is_recorded_is_what_the_kind_of_endpoint_is_asked_with(kind: str, expected: str) -> None:
    assert asked_with(spec(), kind, NOTHING).json == expected


def test_a_parameter_that_the_model_refuses_ends_the_job_before_its_first_call() -> None:
    warm = spec()
    warm.sampling.temperature = 0.7
    with pytest.raises(ProviderError, match="does not take temperature") as refused:
        Identity(warm, "", "openai", Capabilities(sampling=False))
    assert refused.value.fatal


def test_an_identity_costs_microseconds() -> None:
    identity = Identity(spec(), "sha256:a", "openai", NOTHING)
    item = dataclasses.replace(ITEM, messages=(Message("user", "x" * 2000),))
    best = min(timeit.repeat(lambda: identity(item, 0), number=200, repeat=5)) / 200
    assert best < 50e-6, "about 3 µs on an idle machine"
