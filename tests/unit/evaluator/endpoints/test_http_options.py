"""The table of an application in the endpoints file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.evaluator.endpoints import endpoint
from services.evaluator.endpoints.http_options import HttpOptions
from services.evaluator.endpoints.jsonpath import JsonPath
from tests.unit.evaluator.providers.http_calls import TABLE

FILE = """
[[endpoint]]
name = "bot"
kind = "http"
base_url = "http://127.0.0.1:8080/"
[endpoint.http]
path = "/ask/"
headers = {"X-Key" = "{key}"}
request = {question = "{prompt}", options = {temperature = "{temperature}"}}
answer = "$.reply.text"
"""


def test_the_endpoints_file_describes_an_application(tmp_path: Path) -> None:
    file = tmp_path / "endpoints.toml"
    file.write_text(FILE.replace('kind = "http"', 'kind = "http"\napi_key_env = "BOT_KEY"'))
    bot = next(entry for entry in endpoint.load(file, {"BOT_KEY": "s3"}) if entry.name == "bot")
    assert (bot.base_url, bot.api_key) == ("http://127.0.0.1:8080", "s3")
    assert bot.http == HttpOptions(
        request={"question": "{prompt}", "options": {"temperature": "{temperature}"}},
        answer=JsonPath.parse("$.reply.text"),
        path="/ask/",
        headers={"X-Key": "{key}"},
    )


def test_a_header_with_a_key_needs_the_variable_that_holds_it(tmp_path: Path) -> None:
    file = tmp_path / "endpoints.toml"
    file.write_text(FILE)
    with pytest.raises(InvalidRequestError) as caught:
        endpoint.load(file, {})
    assert caught.value.message.endswith(
        "(bot): a header contains {key}. Set api_key_env to the variable that holds the key."
    )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "http.request is missing."),
        ({"request": {"q": "{prompt}"}}, "http.answer is missing."),
        ({**TABLE, "request": {"q": "none"}}, "http.request has no place for the question."),
        ({**TABLE, "request": {"q": "{promt}"}}, "http.request: {promt} is not a known placeholder."),
        ({**TABLE, "request": {"q": "a {messages}"}}, "http.request: {messages} is a list"),
        ({**TABLE, "request": '{"q": '}, "http.request is not valid JSON:"),
        ({**TABLE, "answer": "reply"}, "http.answer: 'reply' is not a valid path"),
        ({**TABLE, "answer": 3}, "http.answer must be a path such as $.reply.text; it is 3"),
        ({**TABLE, "method": "PUT"}, "http.method must be POST or GET; it is 'PUT'."),
        (
            {**TABLE, "method": "GET", "request": {"q": ["{prompt}"]}},
            "http.request must be a table of strings",
        ),
        (
            {**TABLE, "method": "GET", "request": {"q": "{messages}"}},
            "http.request must be a table of strings",
        ),
        ({**TABLE, "path": "ask"}, "http.path must be a string that starts with / or ?; it is 'ask'."),
        ({**TABLE, "headers": {"X Key": "a"}}, "http.headers: 'X Key' cannot be set here"),
        ({**TABLE, "headers": {"Host": "a"}}, "http.headers: 'Host' cannot be set here"),
        ({**TABLE, "headers": {"X-Key": "a\nb"}}, "http.headers: the value of X-Key must be"),
        ({**TABLE, "headers": ["X-Key"]}, "http.headers must be a table of strings"),
        ({**TABLE, "timeout": 3}, "http.timeout is not known. Known keys: method,"),
    ],
)
def test_a_wrong_table_is_refused_with_its_key(table: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        HttpOptions.read(table)
    assert caught.value.message.startswith(said)
    assert caught.value.field.startswith("http.")
