"""Builds the wheel of the client, with the stubs of the protos and the vocabulary that it shares with the services.

In this tree the client imports `services.words` and `services.experiments`. A package called `services` could clash
with another of that name on the user's machine, so the wheel has it as `touchstone_client._services`.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_IMPORT = re.compile(r"^(\s*from )services(?=[. ])", re.MULTILINE)
_SHARED = (
    "__init__.py",
    "errors.py",
    "further_fields.py",
    "json_values.py",
    "numbers.py",
    "words",
    "chat_requests",
    "experiments",
)


class ClientBuildHook(BuildHookInterface):  # type: ignore[misc]
    """Copies the files of the client into one folder, and packs that."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        here, staged = Path(self.root), Path(self.directory, "staged")
        shutil.rmtree(staged, ignore_errors=True)
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(here / "touchstone_client", staged / "touchstone_client", ignore=skipped)
        public = shutil.ignore_patterns("__pycache__", "*_internal_service_pb2*")
        shutil.copytree(here / "../protos/gen/touchstone", staged / "touchstone", ignore=public)
        shutil.copyfile(here / "../LICENSE", staged / "touchstone_client/LICENSE")
        for name in _SHARED:
            source, target = here / "../services" / name, staged / "touchstone_client/_services" / name
            target.parent.mkdir(exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=skipped)
            else:
                shutil.copyfile(source, target)
        for path in (staged / "touchstone_client").rglob("*.py"):
            path.write_text(_IMPORT.sub(r"\1touchstone_client._services", path.read_text("utf-8")), "utf-8")
        for package in ("touchstone_client", "touchstone"):
            build_data["force_include"][str(staged / package)] = package

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(Path(self.directory, "staged"))
