"""Which definitions are taken, and what is said about the others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.experiments import prompts, reading, scenarios
from services.experiments.definition import Model
from services.experiments.fields import DefinitionError
from services.words import rubrics
from services.words.fields import INT64_MAX
from tests.unit.experiments.definitions import small

DOCUMENT = {
    "experiment": "tip-bench-2026-04-27",
    "models": ["qwen2.5:0.5b", "qwen2.5:1.5b", "gemma3:1b", "llama3.2:3b"],
    "prompts": ["v1", "v2-mentor", "v3-few-shot"],
    "n_scenarios": 12,
    "n_tips": 5,
    "diversity": True,
    "temperature": 0.7,
}


def problems(value: Any, **more: Any) -> list[tuple[str, str]]:
    with pytest.raises(DefinitionError) as caught:
        reading.read(value, **more)
    assert caught.value.field == caught.value.problems[0][0]
    return [*caught.value.problems]


def test_the_documents_quick_start_is_a_definition() -> None:
    made = reading.read(DOCUMENT, default_provider="ollama")

    assert made.name == "tip-bench-2026-04-27"
    assert made.models[3] == Model("ollama", "llama3.2:3b")
    assert made.scenarios == scenarios.tips()[:12]
    assert (made.rows, made.cells) == (36, 144)
    assert (made.repeats, made.n_tips, made.diversity, made.max_model_b) == (1, 5, True, 4.0)
    assert made.sampling == {"temperature": 0.7}
    assert rubrics.names(made.rubric) == ["composite", "relevance", "actionability", "tone"]
    assert (made.budget_usd, made.priority) == (None, "")


def test_a_written_definition_is_read_back() -> None:
    rubric = {"version": "own", "criteria": [{"name": "warmth", "lowest": 0, "highest": 10}]}
    for fields in (
        DOCUMENT,
        small(),
        small(seed=3, max_tokens=100, top_p=1, repeats=2, budget_usd=1, priority="high", rubric=rubric, max_model_b=0),
        small(scenarios=[{"who": {"z": 1, "a": [1.0, None]}}], keep_alive=0, diversity=False),
    ):
        made = reading.read(fields, default_provider="ollama")
        again = reading.read(json.loads(made.written()))
        assert again == made
        assert (again.written(), again.digest) == (made.written(), made.digest)


def test_names_in_one_text_and_a_provider_for_all_are_short_forms() -> None:
    short = {"models": "qwen2.5:0.5b, cloud/gemma3:1b,", "prompts": "v1,v2-mentor", "provider": "ollama"}
    long = {"models": ["ollama/qwen2.5:0.5b", "cloud/gemma3:1b"], "prompts": ["v1", "v2-mentor"]}
    providers = ["cloud", "ollama"]
    made = reading.read({"name": "e", **short}, providers=providers, default_provider="cloud")
    assert made == reading.read({"name": "e", **long, "scenarios": {"set": "tips"}})
    assert made.scenarios == scenarios.tips()
    assert problems({"name": "e", **short, "provider": "olama"}, providers=providers)[0] == (
        "provider",
        "provider olama not found. Did you mean ollama?",
    )


def test_null_is_as_good_as_absent() -> None:
    assert reading.read(dict.fromkeys(reading.NAMES) | small()) == reading.read(small())


@pytest.mark.parametrize(
    ("changes", "path", "says"),
    [
        ({"name": "a b"}, "name", "name must be 1 to 64 letters, digits, _, . and -, not only dots; it is 'a b'."),
        ({"name": ".."}, "name", "name must be 1 to 64 letters, digits, _, . and -, not only dots; it is ..."),
        ({"name": "x" * 65}, "name", "name must be 1 to 64 letters"),
        ({"name": 5}, "name", "name must be 1 to 64 letters"),
        ({"models": 5}, "models", "models must be a list: the models to ask, such as ollama/qwen2.5:0.5b."),
        ({"models": " , "}, "models", "models must hold 1 to 100 entries; it has 0."),
        ({"provider": 5}, "provider", "provider 5 not found."),
        ({"models": []}, "models", "models must hold 1 to 100 entries; it has 0."),
        ({"models": ["ollama/a"] * 101}, "models", "models must hold 1 to 100 entries; it has 101."),
        ({"models": ["o/a", "o/b", "o/a"]}, "models[2]", "models[2] is the same model as models[0]. Leave one out."),
        ({"models": ["a"]}, "models[0]", "models[0], a, has no provider. Write provider/model."),
        ({"models": [{"model": "a"}]}, "models[0]", "models[0], a, has no provider."),
        ({"models": ["o/"]}, "models[0]", 'models[0] must be "provider/model", or an object'),
        ({"models": ["o/a\n"]}, "models[0]", 'models[0] must be "provider/model", or an object'),
        ({"models": [{"provider": "o", "model": 1}]}, "models[0]", 'models[0] must be "provider/model", or an object'),
        ({"models": ["o/" + "x" * 301]}, "models[0]", "models[0] has 301 characters; at most 300 are allowed."),
        (
            {"models": [{"provider": "o", "model": "a", "modle": "b"}]},
            "models[0].modle",
            "models[0].modle is not known. Did you mean model? Allowed: provider, model.",
        ),
        (
            {"models": ["ollama/qwen2.5:7b"]},
            "models[0]",
            "qwen2.5:7b at ollama has 7 billion parameters; max_model_b is 4. Choose a smaller model, or set "
            "max_model_b to 0 for any.",
        ),
        ({"prompts": ["v4"]}, "prompts[0]", "prompts[0]: v4 does not ship with Touchstone. Give it a template."),
        (
            {"prompts": ["v2-mento"]},
            "prompts[0]",
            "prompts[0]: v2-mento does not ship with Touchstone. Did you mean v2-mentor? Give it a template.",
        ),
        ({"prompts": ["a/b"]}, "prompts[0]", "prompts[0] must have an id of 1 to 64 letters"),
        (
            {"prompts": [{"id": "v1", "template": "{{who}}"}]},
            "prompts[0]",
            "prompts[0]: v1 ships with Touchstone and has another text. Choose another id.",
        ),
        (
            {"prompts": [{"id": "a", "template": "{{who}}"}, {"id": "a", "template": "{{n_tips}}"}]},
            "prompts[1]",
            "prompts[1]: another prompt has the id a. Give each its own.",
        ),
        ({"prompts": [{"id": "a", "template": 5}]}, "prompts[0]", "prompts[0].template must be a string."),
        ({"prompts": [{"id": "a", "template": "Hi"}]}, "prompts[0].template", "prompts[0], a: The template inserts"),
        (
            {"prompts": [{"id": str(n), "template": "{{who}}" + "x" * 60_000} for n in range(5)]},
            "prompts",
            "prompts has 300,035 bytes; at most 262,144 are allowed.",
        ),
        ({"scenarios": 5}, "scenarios", "scenarios must be a list: "),
        ({"scenarios": {"set": "tip"}}, "scenarios.set", "tip is not a valid scenarios.set. Use one of: tips."),
        (
            {"scenarios": {"set": "tips", "count": 10**15}},
            "scenarios.count",
            "scenarios.count must be between 1 and 210.",
        ),
        ({"scenarios": {"set": "tips", "count": True}}, "scenarios.count", "scenarios.count must be a whole number."),
        (
            {"scenarios": [[]]},
            "scenarios[0]",
            "scenarios[0] must be an object with the values",
        ),
        (
            {"scenarios": [{"id": 1, "who": "A"}, {"id": "1", "who": "B"}]},
            "scenarios[1]",
            "scenarios[1]: another scenario has the id 1. Give each its own.",
        ),
        ({"scenarios": [{"id": "a/b", "who": ""}]}, "scenarios[0].id", "scenarios[0].id must be 1 to 64 letters"),
        (
            {"scenarios": [{"who": "A", "repeat": 1}]},
            "scenarios[0].repeat",
            "scenarios[0].repeat is set by the experiment. Use another name.",
        ),
        (
            {"scenarios": [{"who": "A", "reference": {"a": 1}}]},
            "scenarios[0].reference",
            "scenarios[0]: The reference must be a string, a number, true or false.",
        ),
        (
            {"scenarios": [{"who": "A", "reference": ["a", " "]}]},
            "scenarios[0].reference",
            "scenarios[0]: One of the reference's answers is empty. Leave it out.",
        ),
        ({"scenarios": [{"who": "A", "x" * 201: 1}]}, "scenarios[0]", "A name in scenarios[0] has more than 200"),
        ({"scenarios": [{"who": "é" * 40_000}]}, "scenarios[0]", "scenarios[0] has 80,010 bytes; at most 61,440"),
        ({"scenarios": None, "n_scenarios": 0}, "n_scenarios", "n_scenarios must be between 1 and 210."),
        ({"name": None, "experiment": "a b"}, "experiment", "experiment must be 1 to 64 letters, digits,"),
        ({"name": "new"}, "name", "name cannot be new: /experiments/new is the form. Choose another name."),
        ({"prompts": [{"id": "a", "template": " "}]}, "prompts[0].template", "prompts[0], a: The template is empty."),
        ({"n_scenarios": 5}, "n_scenarios", "Give scenarios or n_scenarios, not both."),
        ({"repeats": 0}, "repeats", "repeats must be between 1 and 10."),
        ({"repeats": 10**18}, "repeats", "repeats must be between 1 and 10."),
        ({"n_tips": "5"}, "n_tips", "n_tips must be a whole number."),
        ({"diversity": "yes"}, "diversity", "diversity must be true or false."),
        ({"temperature": 2.1}, "temperature", "temperature must be between 0 and 2."),
        ({"max_tokens": 5, "num_predict": 5}, "max_tokens", "Give num_predict or max_tokens, not both"),
        (
            {"seed": INT64_MAX, "repeats": 2},
            "seed",
            "seed must be at most 9,223,372,036,854,775,806: each repeat adds 1.",
        ),
        ({"max_model_b": -1}, "max_model_b", "max_model_b must be between 0 and 1,000,000."),
        ({"keep_alive": 60}, "keep_alive", "keep_alive must be 0: "),
        ({"keep_alive": False}, "keep_alive", "keep_alive must be 0: "),
        (
            {"rubric": "tip-v2"},
            "rubric",
            "Rubric tip-v2 not found. Did you mean tip-v1? Use tip-v1, or write a rubric.",
        ),
        ({"rubric": {"version": "x"}}, "rubric.criteria", "The rubric needs between 1 and 12 criteria; it has 0."),
        ({"rubric": 5}, "rubric", "rubric must be tip-v1 or an object with version and criteria."),
        (
            {"rubric": {"version": "tip-v1", "criteria": [{"name": "a", "lowest": 1, "highest": 2}]}},
            "rubric",
            "tip-v1 is the rubric that ships with Touchstone. Give yours another version.",
        ),
        ({"budget_usd": 0}, "budget_usd", "budget_usd must be above 0 and at most"),
        ({"budget_usd": 1}, "budget_usd", "budget_usd needs num_predict, "),
        ({"priority": "urgent"}, "priority", "urgent is not a valid priority. Use one of: "),
        ({"priority": ["high"]}, "priority", "\"['high']\" is not a valid priority."),
        ({"budget": 5}, "budget", "budget is not known. Did you mean budget_usd? Allowed: name, models, "),
        ({"parameters": {}}, "parameters", "parameters is not known. Allowed: name, "),
        ({"who": "\0"}, "who", "who contains the NUL character. Remove it."),
    ],
)
def test_a_wrong_field_is_named_with_what_is_allowed(changes: dict[str, Any], path: str, says: str) -> None:
    (wrong,) = problems(small(**changes))
    assert wrong[0] == path
    assert wrong[1].startswith(says)


@pytest.mark.parametrize("name", ["name", "models", "prompts"])
def test_what_is_required_is_named_with_what_it_is(name: str) -> None:
    ((path, sentence),) = problems(small(**{name: None}))
    assert path == name
    assert sentence.startswith(f"{name} is required: ")


@pytest.mark.parametrize("value", [None, 5, "text", [], b"x"])
def test_a_definition_is_an_object(value: Any) -> None:
    ((path, sentence),) = problems(value)
    assert path == ""
    assert sentence.startswith("The definition must be a")


def test_all_problems_are_found_at_once() -> None:
    found = problems({"nme": "x", "models": ["a", 5], "prompts": ["v9"], "scenarios": {}, "repeats": 11, "seed": "x"})
    assert [path for path, _ in found] == [
        *("nme", "name", "models[0]", "models[1]", "prompts[0]", "scenarios.set", "repeats", "seed"),
    ]
    # Also those of several fields, as far as these are right.
    value = {
        "experiment": "a b",
        "models": ["o", "o/a:9b", "o/b"],
        "prompts": [{"id": "own", "template": "{{whom}}"}],
        "scenarios": [{"who": "Ada"}],
        "budget_usd": 1,
    }
    found = problems(value)
    assert [path for path, _ in found] == ["experiment", "models[0]", "budget_usd", "models[1]", "prompts[0]"]
    assert [path for path, _ in problems({**value, "max_model_b": -1, "num_predict": 0, "n_tips": 0})] == [
        *("experiment", "models[0]", "n_tips", "num_predict", "max_model_b"),
    ]
    assert len(problems({"a": "\0", "b": float("nan")})) == 2


def test_the_message_holds_the_first_problems_only() -> None:
    with pytest.raises(DefinitionError) as caught:
        reading.read({f"x{n}": n for n in range(100_000)})
    assert len(caught.value.message) < 10_000

    with pytest.raises(DefinitionError, match=r"80 further problems not shown\.$"):
        reading.read(small(models=["no provider"] * 100))


def test_a_provider_is_known_or_refused() -> None:
    providers = ["ollama", "cloud"]
    made = reading.read(small(models=["hf.co/a/b", "cloud/m"]), providers=providers, default_provider="ollama")
    assert made.models == (Model("ollama", "hf.co/a/b"), Model("cloud", "m"))

    placed = reading.read(small(models=["m@cloud", "ollama/m@cloud"]), providers=providers)
    assert [(one.provider, one.model) for one in placed.models] == [("cloud", "m"), ("ollama", "m@cloud")]
    assert problems(small(models=["olama/a", "b"]), providers=providers) == [
        ("models[0]", "models[0]: provider olama not found. Did you mean ollama?"),
        ("models[1]", "models[1], b, has no provider. Write provider/model. Providers: cloud, ollama."),
    ]


def test_a_grid_has_a_most_number_of_rows() -> None:
    many = [{"id": f"p{n}", "template": "{{who}}"} for n in range(51)]
    ((path, sentence),) = problems(small(prompts=many, scenarios=[{"who": str(n)} for n in range(2000)]))
    assert path == "scenarios"
    assert sentence.startswith("The experiment has 102,000 rows")


def test_a_shipped_prompt_may_be_written_out() -> None:
    text = prompts.shipped("v1").text
    fields = {"prompts": [{"id": "v1", "template": text}], "scenarios": {"set": "tips", "count": None}}
    assert reading.read(small(**fields)).written() == reading.read(small(**{**fields, "prompts": ["v1"]})).written()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*reading.NAMES, *reading.ALIASES]), anything, max_size=6))
def test_any_values_are_read_or_refused_with_sentences(fields: dict[str, Any]) -> None:
    made, said = None, []
    try:
        made = reading.read({**small(), **fields})
    except DefinitionError as error:
        said = [sentence for _, sentence in error.problems]

    assert made is None or reading.read(made.value()) == made
    assert all(sentence.endswith((".", "?")) for sentence in said)
