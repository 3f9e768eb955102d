"""What a service must not import before it answers: its start waits for it."""

from __future__ import annotations

import subprocess
import sys


def test_no_service_imports_at_its_start_what_few_jobs_need() -> None:
    code = (
        "import sys\n"
        "for name in ('scheduler', 'results', 'evaluator', 'gateway'):\n"
        "    __import__(f'services.{name}.server')\n"
        "late = ('jsonschema', 'opentelemetry.sdk', 'joserfc', 'datasets', 'scipy')\n"
        "print([name for name in late if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.strip() == "[]"
