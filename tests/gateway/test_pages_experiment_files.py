"""Files in the form that starts experiments: they become texts of the form, and wrong ones take nothing with them."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from services.gateway.access import tokens
from services.gateway.http.middleware import MOST_DEFINITION_BYTES
from tests.gateway.fake_world import World
from tests.gateway.gateway_server import Running
from tests.gateway.test_access import with_tokens
from tests.gateway.test_pages_experiments import FIELDS, FORM, checked_in, posted, sent, started, words
from tests.nats_server import NatsServer

TEXT = {"request_id": "one", "by": "text", "act": "check"}
CHECK = FIELDS | {"act": "check"}
YAML = b"name: filed\nmodels: [ollama/phi4-mini]\nprompts: [v1]\nn_scenarios: 3\n"


def told(text: str, place: str) -> str:
    """The problem at a field."""
    return html.unescape(text.partition(f'id="{place}-problem"')[2].partition(">")[2].partition("</p>")[0])


def typed(text: str, field: str) -> str:
    """What stands in a text field."""
    found = re.search(rf'<textarea id="{field}"[^>]*>\n(.*?)</textarea>', text, re.S)
    assert found
    return html.unescape(found[1])


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("tips.yaml", YAML),
        ("tips.yaml", b"\xef\xbb\xbf" + YAML.replace(b"\n", b"\r\n")),
        ("tips.json", b'{"name": "filed", "models": "ollama/phi4-mini", "prompts": "v1", "n_scenarios": 3}'),
    ],
    ids=["yaml", "windows", "json"],
)
async def test_a_definition_comes_from_a_file(gateway: Running, name: str, data: bytes) -> None:
    answer = await posted(gateway, TEXT | {"definition": "name: typed"}, [("definition_file", name, data)])
    assert answer.status_code == 200, words(answer.text)
    assert "3 calls 3 cells" in words(answer.text, "<aside", "</aside>")
    text = typed(answer.text, "definition")
    assert text == data.decode("utf-8-sig").replace("\r\n", "\n")
    assert "data-filled" in answer.text
    assert not gateway.world.datasets
    fields = TEXT | {"definition": text, "checked": checked_in(answer.text), "act": "start"}
    assert (await posted(gateway, fields)).headers["location"] == "/experiments/filed"


async def test_prompts_scenarios_and_a_rubric_come_from_files(gateway: Running) -> None:
    files = [
        ("prompt_file", "brief.txt", b"One tip for {{city}}.\n"),
        ("prompt_file", "C:\\me\\two parts (1).md", b"Tips.\r\n\r\nFor {{city}}\n"),
        ("lines_file", "cities.jsonl", b'{"id": "rome", "city": "Rome"}\n{"city": "Oslo"}\n'),
        ("rubric_file", "brief.yaml", b"version: brief-v1\ncriteria: [{name: short}]\n"),
    ]
    fields = CHECK | {"prompt": [], "of": "own", "prompt_id": "first", "template": "Say {{city}}."}
    answer = await posted(gateway, fields, files)
    assert answer.status_code == 200, words(answer.text)
    asked = json.loads(started(gateway)[-1].definition)
    assert asked["prompts"] == [
        {"id": "first", "template": "Say {{city}}."},
        {"id": "brief", "template": "One tip for {{city}}."},
        {"id": "two-parts-1", "template": "Tips.\n\nFor {{city}}"},
    ]
    assert asked["scenarios"] == [{"id": "rome", "city": "Rome"}, {"city": "Oslo"}]
    assert asked["rubric"]["version"] == "brief-v1"
    assert typed(answer.text, "lines").startswith('{"id": "rome"')
    assert typed(answer.text, "rubric").startswith("version: brief-v1")
    assert typed(answer.text, "own-2") == "Tips.\n\nFor {{city}}"


async def test_another_prompt_may_be_a_file_before_anything_is_checked(gateway: Running) -> None:
    answer = await posted(gateway, FIELDS | {"act": "prompt"}, [("prompt_file", "brief.txt", b"{{about}}")])
    assert answer.status_code == 200
    assert answer.text.count('name="prompt_id"') == 2
    assert 'value="brief"' in answer.text
    assert not started(gateway)


async def test_a_file_of_the_part_that_is_not_chosen_is_left_alone(gateway: Running) -> None:
    answer = await posted(gateway, CHECK, [("definition_file", "a.yaml", b"\0"), ("lines_file", "b.jsonl", b"{")])
    assert answer.status_code == 200, words(answer.text)
    assert typed(answer.text, "definition") == typed(answer.text, "lines") == ""


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"name: a\nmodels: \xff\n", "Line 2 has the byte 0xFF, which is not UTF-8. Save the file as UTF-8."),
        (YAML.decode().encode("utf-16"), "Line 1 has the byte 0xFF, which is not UTF-8."),
        (b"name: a\n\nb: \0\n", "Line 3 has a NUL byte. Remove it"),
        (b"name: a\nmodels: [\n", "The file is not valid YAML on line 3"),
        (b"{\n", "The file is not JSON"),
        (b"- a\n", "The file must hold an object with name, models and prompts."),
        (b" \n", "The file is empty."),
        (b"", "The file is empty."),
        (b"#" * (MOST_DEFINITION_BYTES + 1), "The files have more than 3,000,000 bytes together."),
    ],
    ids=["latin-1", "utf-16", "nul", "yaml", "json", "list", "blank", "empty", "huge"],
)
async def test_a_refused_definition_leaves_what_was_typed(gateway: Running, data: bytes, said: str) -> None:
    answer = await posted(gateway, TEXT | {"definition": "name: typed"}, [("definition_file", "my tips.yaml", data)])
    assert answer.status_code == 422
    assert told(answer.text, "definition").startswith(f"my tips.yaml: {said}")
    assert typed(answer.text, "definition") == "name: typed"
    assert not started(gateway)


async def test_each_problem_of_each_file_is_named(gateway: Running) -> None:
    files = [
        ("lines_file", "cities.jsonl", b'{"city": "Rome"}\n{\n\n{"a": 1, "a": 2}\n'),
        ("rubric_file", "rubric.yaml", b"version: ["),
        ("prompt_file", "brief.txt", b"{{about"),
        ("prompt_file", "fine.txt", b"{{city}}"),
        ("prompt_file", "odd.txt", b"\n\xc3"),
    ]
    fields = CHECK | {"of": "own", "lines": '{"city": "Oslo"}', "rubric": "version: mine", "name": "no spaces"}
    answer = await posted(gateway, fields, files)
    assert answer.status_code == 422
    lines = told(answer.text, "scenarios").split("\n")
    assert [line.rpartition("Line ")[2][:2] for line in lines] == ["2:", "4:"]
    assert all(line.startswith("cities.jsonl: Line ") for line in lines)
    assert told(answer.text, "rubric").startswith("rubric.yaml: The file is not valid YAML on line 2")
    prompts = told(answer.text, "prompts").split("\n")
    assert [line.partition(":")[0] for line in prompts] == ["brief.txt", "odd.txt"]
    assert typed(answer.text, "lines") == '{"city": "Oslo"}'
    assert typed(answer.text, "rubric") == "version: mine"
    assert 'value="no spaces"' in answer.text
    assert typed(answer.text, "own-0") == "{{city}}"
    assert not started(gateway)


async def test_a_definition_with_faults_can_be_corrected_in_place(gateway: Running) -> None:
    faults = b"name: no spaces\nmodels: [ollama/phi4-mini]\nprompts: [v8, v9]\nrepeats: 99\nsince: 1\n"
    answer = await posted(gateway, TEXT, [("definition_file", "tips.yaml", faults)])
    assert answer.status_code == 422
    said = told(answer.text, "definition")
    assert len(said.split("\n")) == 5
    for place in ("name must be", "prompts[0]", "prompts[1]", "repeats", "since"):
        assert place in said
    assert typed(answer.text, "definition").encode() == faults


async def test_a_prompt_s_file_replaces_no_other_prompt(gateway: Running) -> None:
    own = {"prompt_id": "brief", "template": "{{about}}"}
    same = await posted(gateway, CHECK | own, [("prompt_file", "brief.txt", b"{{about}}\n")])
    assert same.status_code == 200
    other = await posted(gateway, CHECK | own, [("prompt_file", "brief.txt", b"{{time}}")])
    assert told(other.text, "prompts").startswith("brief.txt: Another prompt has the id brief.")
    assert typed(other.text, "own-0") == "{{about}}"
    many = [("prompt_file", f"p{number}.txt", b"{{about}}") for number in range(21)]
    assert told((await posted(gateway, CHECK, many)).text, "prompts").startswith("p20.txt: The form has room for 20")


async def test_hostile_names_are_text(gateway: Running) -> None:
    names = ["<script>alert(1)</script>.txt", "../../etc/passwd", "\u202egnp.txt", "候选.txt", "x" * 4000, ".."]
    files = [("prompt_file", name, b"{{about}} %d" % place) for place, name in enumerate(names)]
    answer = await posted(gateway, CHECK, files)
    assert answer.status_code == 200, words(answer.text)
    ids = [one["id"] for one in json.loads(started(gateway)[-1].definition)["prompts"] if isinstance(one, dict)]
    assert ids == ["script", "passwd", "gnp", "prompt", "x" * 64, "file"]
    refused = await posted(gateway, TEXT, [("definition_file", "<img src=x>\u202e", b"\0")])
    assert "<img src" not in refused.text
    assert told(refused.text, "definition").startswith("<img src=x>: Line 1 has a NUL byte.")


async def test_forms_that_no_page_sends_are_refused(gateway: Running) -> None:
    headers = {"Origin": gateway.url, "Accept": "text/html"}
    plain = await gateway.client.post(FORM, data={"act": "check"}, headers=headers)
    assert plain.status_code == 415
    assert "Reload it" in plain.text
    for files, said in (
        ([("other", "a", b"")], "is not a field for files"),
        ([("lines_file", "", b"")] * 2001, "more than 2,000 fields"),
    ):
        answer = await posted(gateway, TEXT, files)
        assert answer.status_code == 400
        assert said in html.unescape(answer.text)
    large = await posted(gateway, TEXT | {"definition": "#" * 1_600_000, "lines": "#" * 1_500_000})
    assert large.status_code == 413
    assert "The form has more than 3,000,000 bytes." in large.text


async def test_texts_of_the_most_size_are_read_whole(gateway: Running) -> None:
    data = YAML + b"#" * (MOST_DEFINITION_BYTES - len(YAML))
    answer = await posted(gateway, TEXT, [("definition_file", "large.yaml", data)])
    assert answer.status_code == 200, words(answer.text)
    assert len(typed(answer.text, "definition")) == MOST_DEFINITION_BYTES
    grown = b'{"name": "a", "models": "m", "scenarios": [{"a": [' + b"1e9," * 400_000 + b"1]}]}"
    answer = await posted(gateway, TEXT, [("definition_file", "grown.json", grown)])
    assert answer.status_code == 422
    assert "The definition as JSON has" in words(answer.text)


async def test_a_session_s_form_with_files_shows_its_token(tmp_path: Path) -> None:
    nats = NatsServer().start(tmp_path)
    try:
        async with with_tokens(nats, World()) as (gateway, nats_bus):
            text = await tokens.create(nats_bus, "m.keller", "admin", "nightly")
            answer = await gateway.client.post("/login", data={"token": text}, headers={"Origin": gateway.url})
            cookie = {"Cookie": f"touchstone={answer.cookies['touchstone']}"}
            form = await gateway.client.get(FORM, headers={"Accept": "text/html"} | cookie)
            found = re.search(r'name="csrf" value="([^"]+)"', form.text)
            assert found
            token, files = found[1], [("definition_file", "a.yaml", YAML)]
            for fields in (TEXT, TEXT | {"csrf": "x" * 32}):
                refused = await posted(gateway, fields, files, cookie)
                assert refused.status_code == 403
                assert "too old" in refused.text
            assert (await posted(gateway, {"csrf": token} | TEXT, files, cookie)).status_code == 200
            assert (await posted(gateway, TEXT, files, cookie | {"X-CSRF-Token": token})).status_code == 200
            elsewhere = cookie | {"X-CSRF-Token": token, "Origin": "http://evil.example"}
            assert (await posted(gateway, TEXT, files, elsewhere)).status_code == 403
    finally:
        nats.stop()


async def test_a_text_that_is_typed_later_replaces_the_file_s(gateway: Running) -> None:
    answer = await posted(gateway, TEXT, [("definition_file", "tips.yaml", YAML)])
    changed = typed(answer.text, "definition").replace("n_scenarios: 3", "n_scenarios: 4")
    checked = checked_in(answer.text)
    again = await posted(gateway, TEXT | {"definition": changed, "checked": checked, "act": "start"})
    assert again.status_code == 200, "what has changed since is counted first"
    assert "4 calls" in words(again.text, "<aside", "</aside>")
    assert (await sent(gateway, act="check")).status_code == 200
