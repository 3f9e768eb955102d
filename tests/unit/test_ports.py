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
