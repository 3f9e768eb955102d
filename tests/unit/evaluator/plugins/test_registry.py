"""What installed packages add to an evaluator, and what of them is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints import endpoint
from services.evaluator.endpoints.table import FurtherKinds
from services.evaluator.plugins.contract import Limits
from services.evaluator.plugins.registry import Plugins
from tests.plugin_packages import PROVIDERS, SCORERS, SUITES, install, scorer, suite, use

LIMITS = Limits(import_s=4)
PROVIDER = """
from services.evaluator.endpoints.kinds import Kind
from services.evaluator.plugins.contract import ProviderKind

KIND = ProviderKind(Kind("Many", concurrency="many"), print)
"""


@pytest.mark.stack
async def test_a_broken_part_is_named_and_left_out_and_the_others_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files = {
        "fine": suite("fine"),
        "raises": "raise RuntimeError('no luck today')",
        "exits": "import os\nos._exit(3)",
        "hangs": "import time\ntime.sleep(100)",
        "bare": "SUITE = 'bare'\nTASKS = ()",
        "no_scorer": "SCORER = 3",
        "own_scorer": scorer("own_scorer"),
        "gate": "import sys\nsys.exit('not here')",
        "own_base": "class Skipped(BaseException): pass\nraise Skipped('not \\ud800 here')",
        "half": suite("half").replace('"Sums", "Sums of numbers."', '"\\ud800", "Sums."'),
        "long": suite("long").replace('"Sums", "Sums of numbers."', '"Sums", "S" * 3_000_000'),
        "halved": scorer("halved").replace('title="T"', 'title="\\ud800"'),
        "version_7": scorer("version_7").replace('"version_7-1"', "7"),
        "own_class": scorer("own_class")
        .replace("SCORER =", "class Text(str): pass\nSCORER =")
        .replace('title="T"', 'title=Text("T")'),
        "many_calls": PROVIDER,
    }
    parts = {
        name: name
        for name in ("fine", "raises", "exits", "hangs", "bare", "gate", "own_base", "half", "long", "missing_module")
    }
    scorers = {name: f"{name}:SCORER" for name in ("no_scorer", "own_scorer", "halved", "version_7", "own_class")}
    install(
        tmp_path,
        "many-parts",
        files,
        {SUITES: parts, SCORERS: scorers, PROVIDERS: {"away": "fine:nothing", "many_calls": "many_calls:KIND"}},
    )
    install(tmp_path, "other", {"apart": suite("apart")}, {SUITES: {"apart": "apart"}})
    use(monkeypatch, tmp_path)

    plugins = await Plugins.load(LIMITS)

    try:
        told = {part.name: part.left_out for plugin in plugins.announced() for part in plugin.parts}
        assert told == {
            "fine": "",
            "apart": "",
            "own_scorer": "",
            "raises": "RuntimeError: no luck today.",
            "exits": "Its process ended while it was imported (ended its process with exit code 3).",
            "hangs": "It was not imported within 4 s.",
            "bare": "TITLE is missing: the name that pages show. DESCRIPTION is missing: a sentence on what the suite "
            "measures. TASKS is missing: a tuple of the suite's tasks, such as MultipleChoice(...).",
            "gate": "SystemExit: not here.",
            "own_base": "Skipped: not ? here.",
            "half": "TITLE has half a character, which cannot be shown: '\\ud800'.",
            "halved": "What it declares cannot be announced: UnicodeEncodeError: 'utf-8' codec can't encode character "
            "'\\ud800' in position 0: surrogates not allowed.",
            "long": told["long"],
            "version_7": "The scorer's version must be a text, not int.",
            "own_class": "What it declares cannot be read: ForeignClassError: an object of own_class.Text. Give plain "
            "texts, numbers, lists and dictionaries.",
            "many_calls": "concurrency of its Kind must be of type int.",
            "missing_module": "ModuleNotFoundError: No module named 'missing_module'.",
            "no_scorer": "The entry point names int, not a Scorer.",
            "away": "AttributeError: module 'fine' has no attribute 'nothing'.",
        }
        assert told["long"].startswith("Its titles and descriptions take 3,000,")
        assert plugins.suites.keys() == {"fine", "apart"}
        assert plugins.scorers.keys() == {"own_scorer"}
        assert "suite raises of many-parts 1.0 is left out: RuntimeError: no luck today." in caplog.text
        assert Catalogue(None, plugged=plugins.suites).task("apart", "sums").size() == 20
        _check_endpoints(tmp_path, plugins)
    finally:
        plugins.close()


def _check_endpoints(folder: Path, plugins: Plugins) -> None:
    """An endpoint whose kind is left out says why, and the others are read as ever."""
    file = folder / "endpoints.toml"
    file.write_text(
        '[[endpoint]]\nname = "one"\nkind = "away"\nbase_url = "http://x"\n'
        '[[endpoint]]\nname = "two"\nkind = "ollama"\n'
    )
    read = endpoint.load(file, {}, FurtherKinds(plugins.kinds, plugins.missing_kinds))
    assert [(each.name, each.configured) for each in read] == [("baseline", True), ("one", False), ("two", True)]
    assert read[1].unusable.startswith("one cannot be used: many-parts 1.0 is left out: AttributeError")


async def test_names_of_built_in_parts_and_of_other_packages_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = {SUITES: {"glue": "m", "twice": "m", "Bad Name": "m"}, SCORERS: {"choice": "m"}, PROVIDERS: {"vllm": "m"}}
    install(tmp_path, "one", {"m": "raise SystemError('this is never imported')"}, taken)
    install(tmp_path, "two", {}, {SUITES: {"twice": "m"}})
    use(monkeypatch, tmp_path)

    plugins = await Plugins.load(LIMITS)

    plugins.close()
    both = "one and two both offer suite twice. Uninstall one."
    assert {(plugin.package, part.name): part.left_out for plugin in plugins.announced() for part in plugin.parts} == {
        ("one", "glue"): "glue is the name of a built-in suite. Rename it.",
        ("one", "choice"): "choice is the name of a built-in scorer. Rename it.",
        ("one", "vllm"): "vllm is the name of a built-in provider. Rename it.",
        (
            "one",
            "Bad Name",
        ): "The name 'Bad Name' must have 1 to 40 lower-case letters, digits, _ or -, a letter first.",
        ("one", "twice"): both,
        ("two", "twice"): both,
    }
    assert (plugins.suites, plugins.scorers, plugins.kinds) == ({}, {}, {})
    assert plugins.missing_kinds == {}


async def test_a_suite_whose_name_differs_from_its_entry_point_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "one", {"m": suite("inner")}, {SUITES: {"outer": "m"}})
    use(monkeypatch, tmp_path)

    plugins = await Plugins.load(LIMITS)

    plugins.close()
    ((part,),) = [plugin.parts for plugin in plugins.announced()]
    assert part.left_out == "SUITE is 'inner', but the entry point is named 'outer'. Use one name."
