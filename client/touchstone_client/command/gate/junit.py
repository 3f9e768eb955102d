"""The outcome as JUnit XML: one test case for the suite and one for each task."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from services.words.refusals import counted
from touchstone_client.command.gate.exits import PASSED, REGRESSION
from touchstone_client.command.gate.verdict import Finding, Outcome
from touchstone_client.command.printing.figures import p_value, signed
from touchstone_client.files import unfinished

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold; a provider's error may have them."""


def write(path: Path, outcome: Outcome, suite: str, seconds: float) -> None:
    """The suite's case passes, fails or is an error as the gate's exit code says.

    A task's case fails when the task is shown to be worse after the correction for several tasks; that alone does not
    change the exit code.
    """
    root = ElementTree.Element("testsuite", name=f"touchstone gate {suite}", time=f"{seconds:.3f}")
    words = _plain(outcome.words)
    whole = _case(root, suite, "suite", words)
    if outcome.code == REGRESSION:
        ElementTree.SubElement(whole, "failure", type="regression", message=words)
    elif outcome.code != PASSED:
        ElementTree.SubElement(whole, "error", type=f"exit {outcome.code}", message=words)
    for finding in outcome.findings[1:]:
        words = _plain(described(finding))
        case = _case(root, suite, finding.task, words)
        if finding.worse:
            ElementTree.SubElement(case, "failure", type="regression", message=words)
        elif finding.difference is None:
            ElementTree.SubElement(case, "skipped", message=words)
    for name in ("failure", "error", "skipped"):
        plural = name if name == "skipped" else f"{name}s"
        root.set(plural, str(len(root.findall(f"testcase/{name}"))))
    root.set("tests", str(len(root.findall("testcase"))))
    ElementTree.indent(root)
    with unfinished(path) as file:
        ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)


def described(finding: Finding) -> str:
    """accuracy −0.0123, between −0.0200 and −0.0046, p 0.0012, 277 items."""
    if finding.difference is None:
        return finding.reason or "the difference is not defined"
    return (
        f"{finding.metric} {signed(finding.difference)}, between {signed(finding.low)} and {signed(finding.high)}, "
        f"p {p_value(finding.p_value)}, {counted(finding.n, 'item')}"
    )


def _plain(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _case(root: ElementTree.Element, suite: str, name: str, words: str) -> ElementTree.Element:
    case = ElementTree.SubElement(root, "testcase", classname=f"touchstone.{suite}", name=name)
    ElementTree.SubElement(case, "system-out").text = words
    return case
