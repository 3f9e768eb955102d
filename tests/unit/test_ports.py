"""Ports that the launcher and the tests choose."""

from __future__ import annotations

import subprocess
import sys

from deploy.local import ports
from deploy.local.settings import ROOT

ONLY = """
import sys
from deploy.local import ports
ports._LOWEST, ports._ephemeral_start = int(sys.argv[1]), lambda: int(sys.argv[1]) + 1
print(ports.is_free(int(sys.argv[1])))
print(ports.free_port())
"""


def only(port: int) -> subprocess.CompletedProcess[str]:
    """What another process chooses that may take no other port."""
    command = [sys.executable, "-c", ONLY, str(port)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_a_port_is_given_to_one_living_process_though_nobody_listens_there_yet() -> None:
    refused = only(ports.free_port())
    assert refused.stdout == "True\n"
    assert "OSError: no free port" in refused.stderr


def test_a_usual_port_goes_to_one_of_two_that_start_together() -> None:
    port = ports.free_port()
    assert ports.take(port), "it is ours already"
    code = "import sys; from deploy.local import ports; print(ports.take(int(sys.argv[1])))"
    other = subprocess.run(
        [sys.executable, "-c", code, str(port)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert other.stdout == "False\n"
