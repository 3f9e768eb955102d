"""Definitions and scenarios in files."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from services.experiments import files, reading
from services.experiments.fields import DefinitionError
from tests.unit.experiments.test_docs import BLOCKS


def test_yaml_and_json_hold_the_same_definition() -> None:
    made = files.definition(BLOCKS["yaml"][0].encode())
    assert reading.read(made).cells == 180
    text = b'{"name": "a", "models": "o/m", "prompts": "v1"}'
    assert (
        files.definition(text)
        == files.definition(text, is_json=True)
        == {"name": "a", "models": "o/m", "prompts": "v1"}
    )


def test_scenarios_are_lines() -> None:
    assert files.scenarios(b'{"city": "Rome"}\n\n{"city": "Oslo"}') == [{"city": "Rome"}, {"city": "Oslo"}]


@pytest.mark.parametrize(
    ("read", "data", "said"),
    [
        (files.definition, b"- a", "The file must hold an object with name, models and prompts."),
        (files.definition, b"a: &x 1\nb: *x", "has a YAML alias"),
        (lambda data: files.definition(data, is_json=True), b"{", "is not JSON"),
        (lambda data: files.definition(data, is_json=True), b'{\n"a" 1}', "at line 2, character 5."),
        (lambda data: files.definition(data, is_json=True), b'{"a": 1,\n"a": 2}', 'Line 2: The name "a" occurs twice'),
        (lambda data: files.definition(data, is_json=True), b'{"b": 1,\n"a": 1e999}', "Line 2: The number"),
        (files.definition, b"a: 1\nb: [.nan]", 'Line 2: The value "nan" has no form in JSON.'),
        (files.definition, b"a: 1\nb: " + b"9" * 5_000, "Line 2: The file contains a number with too many digits."),
        (files.definition, b'a: 1\nb: "\\0"', "Line 2: A string contains the NUL character"),
        (files.scenarios, b"{}\n{", "Line 2: "),
        (files.scenarios, b'{"a": 1}\n\n["b"]', "Line 3: The line must be a JSON object"),
    ],
)
def test_other_files_are_refused(read: Any, data: bytes, said: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        read(data)
    assert said in caught.value.message


def test_without_its_package_yaml_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name == "services.chat_requests" and "yaml_document" in (rest[2] or ()):
            raise ModuleNotFoundError("No module named 'yaml'")
        return whole(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(DefinitionError, match="pip install pyyaml"):
        files.definition(b"a: 1")
    assert files.definition(b"{}", is_json=True) == {}
