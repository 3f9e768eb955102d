"""`python -m tests.audit`: a bill of materials of the images' packages in dist, and which of them have known
vulnerabilities. Ends with exit code 1 if one has."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import services

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements/image.txt"
KNOWN_BAD = "django==2.2"
"""With it, a service that knows nothing is seen: pip-audit itself takes no answer for a good one. In no lock."""
_PIN = re.compile(r"(?m)^([\w.-]+)==([^\s;]+)")
_TIME_S = 600


@dataclass(frozen=True)
class Audit:
    """Vulnerabilities of a lock by package and version, or the reason why it could not be checked."""

    packages: int
    found: dict[str, list[str]] = field(default_factory=dict)
    not_checked: str = ""

    def __str__(self) -> str:
        if self.not_checked:
            return f"Known vulnerabilities: NOT CHECKED. {self.not_checked}"
        if not self.found:
            return f"Known vulnerabilities: none found in {self.packages} packages."
        lines = [f"  {name}: {', '.join(ids)}" for name, ids in self.found.items()]
        return "\n".join([f"Known vulnerabilities in {len(self.found)} of {self.packages} packages:", *lines])


def pins(lock: Path) -> list[str]:
    return ["==".join(pin) for pin in _PIN.findall(lock.read_text())]


def audit(lock: Path) -> Audit:
    """Asks the vulnerability service that pip-audit is set to ask, by default PyPI. `PIP_AUDIT_VULNERABILITY_SERVICE`
    and `PIP_AUDIT_OSV_URL` set another one."""
    known = pins(lock)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join([KNOWN_BAD, *known]))
        file.flush()
        # Strict: otherwise packages that the service does not answer about are left out in silence.
        options = ("--strict", "--disable-pip", "--no-deps", "--progress-spinner=off", "--format=json", "--desc=off")
        done = _run("pip-audit", *options, "--requirement", file.name)
    try:
        answered = json.loads(done.stdout)["dependencies"]
        by_pin = {f"{one['name']}=={one['version']}": [vuln["id"] for vuln in one["vulns"]] for one in answered}
    except (ValueError, LookupError, TypeError):
        last = (done.stderr.strip().splitlines() or ["pip-audit printed nothing."])[-1]
        return Audit(len(known), not_checked=f"No vulnerability service answers: {last[:300]}")
    if not by_pin.get(KNOWN_BAD):
        return Audit(len(known), not_checked=f"The service does not know that {KNOWN_BAD} is vulnerable.")
    if len(by_pin) <= len(known):
        return Audit(len(known), not_checked=f"The service answered about {len(by_pin) - 1} of {len(known)} packages.")
    return Audit(len(known), {pin: ids for pin, ids in by_pin.items() if ids and pin != KNOWN_BAD})


def bill(lock: Path, folder: Path) -> Path:
    """Writes the bill of materials in the form of CycloneDX. Raises ValueError if a package or its hashes are not in
    it."""
    folder.mkdir(exist_ok=True)
    file = folder / f"touchstone-{services.__version__}.cdx.json"
    options = ("--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible", "--output-file", str(file))
    done = _run("cyclonedx-py", "requirements", str(lock), *options)
    if done.returncode:
        raise ValueError(f"cyclonedx-py: {done.stderr.strip()[-2000:]}")
    document = json.loads(file.read_text())
    # pyproject.toml has no version: it is in services.
    document["metadata"]["component"]["version"] = services.__version__
    file.write_text(json.dumps(document, indent=2) + "\n")
    if missing := missing_in(document, pins(lock)):
        raise ValueError(f"The bill of materials lacks {', '.join(missing)}, or the hashes.")
    return file


def missing_in(document: Mapping[str, Any], packages: Sequence[str]) -> list[str]:
    """The packages that have no hash in a bill of materials."""
    with_hashes = {
        f"{one['name']}=={one['version']}"
        for one in document["components"]
        if any(reference.get("hashes") for reference in one.get("externalReferences", ()))
    }
    return sorted({*packages} - with_hashes)


def main(lock: Path = LOCK, folder: Path = ROOT / "dist", say: Callable[[str], None] = print) -> int:
    file = bill(lock, folder)
    say(f"{file.relative_to(folder.parent)}: {len(pins(lock))} packages with their hashes")
    found = audit(lock)
    say(str(found))
    return 1 if found.found else 0


def _run(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A tool of the environment that this Python belongs to."""
    command = [str(Path(sys.executable).with_name(tool)), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=_TIME_S, check=False)


if __name__ == "__main__":
    sys.exit(main())
