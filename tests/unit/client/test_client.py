"""The Python client has every public call."""

from __future__ import annotations

import inspect
from pathlib import Path

from tests.unit.client.fakes import SERVICES
from touchstone_client import Client

NOT_THERE = {"ImportAnswers", "Scheduler.ListJobs"}
"""The import's stream, which has a method of another form, and a list of live jobs alone."""


def test_every_public_call_is_in_the_client() -> None:
    folder = Path(inspect.getfile(Client)).parent
    files = [*folder.glob("blocking/*.py"), folder / "requests.py", folder / "uploading.py"]
    sources = "".join(path.read_text() for path in files)
    public = {
        method.input_type.name
        for service in SERVICES
        for method in service.methods
        if not {method.name, f"{service.name.removesuffix('Service')}.{method.name}"} & NOT_THERE
        and not method.GetOptions().deprecated
    }
    assert {name for name in public if f".{name}(" not in sources} == set()
