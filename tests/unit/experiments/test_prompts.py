"""The shipped prompts never change, and fill with every shipped scenario."""

from __future__ import annotations

import pytest

from services.chat_requests.faults import RefusedError, WrongRowError
from services.experiments import prompts, reading
from services.experiments.grid import DIFFER
from services.experiments.prompts import SHIPPED, Prompt
from services.experiments.scenarios import tips
from services.words import rubrics

DIGESTS = {
    "v1": "b50fc3988332c92b90f3344bde7cd73cd9df339ae2b18263ff1bd013cd8e888f",
    "v2-mentor": "86cc087e4c278b069b96dc78c993c4b14b21594a12f58dd9c6759b0434f1947d",
    "v3-few-shot": "e8f2917364b0ff26d1adbe2e53a148b1b3aaab9c564c556956c0a57abf780268",
}
RUBRIC = "bfee85b68dcdfb9ad656158d4a7b48813d45be9a52b3b18d91aad9b4837f6111"


@pytest.mark.parametrize("prompt_id", SHIPPED)
def test_a_version_never_changes(prompt_id: str) -> None:
    assert prompts.shipped(prompt_id).digest == DIGESTS[prompt_id]


def test_the_rubric_never_changes() -> None:
    assert rubrics.digest(reading.shipped_rubric()) == RUBRIC


@pytest.mark.parametrize("prompt_id", SHIPPED)
@pytest.mark.parametrize("diversity", ["", DIFFER])
def test_a_shipped_prompt_asks_for_a_list_of_tips(prompt_id: str, diversity: str) -> None:
    scenario = tips()[0]
    messages = prompts.shipped(prompt_id).messages({**scenario.row, "n_tips": 4, "diversity": diversity})
    asked = messages[-1]["content"]

    assert messages[-1]["role"] == "user"
    for name in ("about", "time", "tasks"):
        assert scenario.fields[name] in asked
    assert asked.endswith("\nAnswer with a JSON list of 4 strings and nothing else.")
    assert (DIFFER in asked) == bool(diversity)
    assert "{{" not in "".join(message["content"] for message in messages)


def test_the_versions_differ_as_their_names_say() -> None:
    roles = {prompt_id: [role for role, _ in prompts.shipped(prompt_id).template.messages] for prompt_id in SHIPPED}
    assert roles == {
        "v1": ["user"],
        "v2-mentor": ["system", "user"],
        "v3-few-shot": ["system", "user", "assistant", "user", "assistant", "user"],
    }


def test_other_ids_do_not_ship() -> None:
    with pytest.raises(KeyError):
        prompts.shipped("../rubrics/tip-v1")


def test_a_template_with_messages_of_a_scenario() -> None:
    prompt = Prompt.parse("chat", '[{"role": "system", "content": "Be {{tone}}."}, {"messages": "{{turns}}"}]')
    turns = [{"role": "user", "content": "Hi {{tone}}"}]

    assert prompt.messages({"tone": "kind", "turns": turns}) == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi {{tone}}"},
    ]
    with pytest.raises(WrongRowError):
        prompt.messages({"tone": "kind", "turns": "no JSON"})


@pytest.mark.parametrize("text", ["", "no column", "{{", "{{}}", "a\0{{b}}", "\ud800{{a}}", "[{]"])
def test_a_text_that_is_not_a_template_is_refused(text: str) -> None:
    with pytest.raises(RefusedError):
        Prompt.parse("p", text)
