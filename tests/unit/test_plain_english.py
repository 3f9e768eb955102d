"""Rules of plain English that a search can check. The others are for reviewers; see CONTRIBUTING.md."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from tests.unit.test_structure import ROOT, nodes, relative, sources

MOST_WORDS = 30
GUIDES = sorted(
    chain(
        (ROOT / "docs").glob("*.md"),
        (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "tests/README.md")),
    )
)
TEMPLATES = sorted((ROOT / "web/templates").rglob("*.html"))
SPEAKING = ("services", "client", "deploy")
PROMPTS = ("services/evaluator/tasks", "services/evaluator/demo")
"""What models are asked stays as it is: scores of earlier runs rest on it."""
PROTOS = sorted((ROOT / "protos/touchstone/v1").glob("*.proto"))
UNCLEAR = {
    "told by": re.compile(r"\btold by\b"),
    "mend": re.compile(r"\bmend(s|ed|ing)?\b"),
    "whoever": re.compile(r"\bwhoever\b", re.IGNORECASE),
    "X is no Y": re.compile(r"\b(it|that|this|there where|one) is no (?!longer)\w|\bare no part\b|\bis no part\b"),
    "a limit that ends": re.compile(r"\b(begins|ends) at \d"),
    "a limit as a choice": re.compile(r"; it may (be|have)\b|\bmay be (0|1) \(?(to|or)\b"),
    "N a M": re.compile(r"\b(items|answers|calls|rows|tokens) an? (item|task|minute|second|row|job)\b"),
    "shown beside": re.compile(r"\bshown beside\b"),
    "counts alike": re.compile(r"\bcounts? alike\b"),
    "goes on by itself": re.compile(r"\bgo(es)? on by (itself|themselves)\b"),
    "another one": re.compile(r"\bis another one\b"),
    "so many": re.compile(r"\b[Ss]o many\b"),
    "half a sentence": re.compile(r"\bhalf a sentence\b"),
}
IDIOM = UNCLEAR | {
    "beside": re.compile(r"\b[Bb]esides?\b"),
    "stands for": re.compile(r"\bstands? (in )?(for|beside)\b"),
    "is told": re.compile(r"\b(is|are|was|were|be|been) told\b|\btold (apart|of|from)\b|\btells? (of|apart)\b"),
    "is none": re.compile(r"\b(that|which|what) (is|are) none\b"),
    "as X has it": re.compile(r"\bas [\w' -]{2,30} (has|have) it\b"),
    "X is no Y": re.compile(r"(?<![Tt]here )\b(is|are) no (?!longer\b)\w"),
    "what cannot be": re.compile(r"\b(what|that|which) cannot be[,.;:)]"),
    "hangs on": re.compile(r"\bhangs? (on|together)\b"),
    "cut short": re.compile(r"\bcut short\b"),
    "for want of": re.compile(r"\bfor want of\b"),
    "anew": re.compile(r"\banew\b"),
    "for good": re.compile(r"\bfor good\b"),
    "goes on": re.compile(r"\b(go|goes|went|going) on\b"),
    "of its own": re.compile(r"\bof (its|their|our) own[,.;:)]"),
    "comes to": re.compile(r"\bwhat (it|they|a \w+) comes? to\b"),
}
"""What comments and documentation avoid as well. In texts for users, some of these words are right."""
READING = "services/evaluator/answers/reading"
"""Its documentation speaks of sentences that say of an answer what it is, in the words of grammar."""


def sentences(markdown: str) -> list[str]:
    """The sentences of the prose: without code, headings, tables, links' targets and marks."""
    prose = re.sub(r"(?ms)^```.*?^```", "", markdown)
    prose = "\n".join(line for line in prose.splitlines() if not line.startswith(("#", "|", "!", "    ")))
    prose = re.sub(r"\]\([^)]*\)", "]", prose).replace("**", "")
    blocks = re.split(r"\n\s*\n|\n(?=\s*[-*] )", prose)
    return [
        " ".join(sentence.split())
        for block in blocks
        for sentence in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`\"])", block)
        if sentence.strip()
    ]


def test_no_sentence_of_the_readme_is_longer_than_thirty_words() -> None:
    found = sentences((ROOT / "README.md").read_text())

    assert len(found) > 50
    assert [sentence for sentence in found if len(sentence.split()) > MOST_WORDS] == []


@cache
def texts(path: Path) -> str:
    """What a module says to users: its texts, without documentation. Values in a text count as 0."""
    documentation = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    said = [
        str(node.value)
        if isinstance(node, ast.Constant)
        else "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values)
        for node in nodes(path)
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in documentation
    ]
    return "\n".join(said)


@cache
def documentation(path: Path) -> str:
    """The documentation and the comments of a module, each on one line, without what is quoted as code."""
    documented = [
        node.value.value
        for node in nodes(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    comments = "\n".join(
        token.string.removeprefix("#").strip()
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
        if token.type == tokenize.COMMENT
    )
    joined = "\n".join(" ".join(text.split()) for text in documented)
    return re.sub(r"`[^`]*`", "`code`", f"{joined}\n{comments}")


@pytest.mark.parametrize("phrase", IDIOM)
def test_comments_and_documentation_avoid_unclear_phrases(phrase: str) -> None:
    explained = [path for folder in SPEAKING for path in sources(folder) if not relative(path).startswith(READING)]
    found = {relative(path): IDIOM[phrase].findall(documentation(path)) for path in explained}

    assert len(found) > 300
    assert {path: hits for path, hits in found.items() if hits} == {}


@pytest.mark.parametrize("phrase", UNCLEAR)
def test_what_the_code_says_avoids_unclear_phrases(phrase: str) -> None:
    speaking = [path for folder in SPEAKING for path in sources(folder) if not relative(path).startswith(PROMPTS)]
    found = {relative(path): UNCLEAR[phrase].findall(texts(path)) for path in speaking}

    assert len(found) > 100
    assert {path: hits for path, hits in found.items() if hits} == {}


@pytest.mark.parametrize("phrase", UNCLEAR)
def test_guides_and_pages_avoid_unclear_phrases(phrase: str) -> None:
    found = {relative(path): UNCLEAR[phrase].findall(path.read_text()) for path in (*GUIDES, *TEMPLATES)}

    assert len(found) > 50
    assert {path: hits for path, hits in found.items() if hits} == {}


@pytest.mark.parametrize("phrase", UNCLEAR)
def test_comments_of_the_protos_avoid_unclear_phrases(phrase: str) -> None:
    found = {
        relative(path): UNCLEAR[phrase].findall("\n".join(re.findall(r"//(.*)", path.read_text()))) for path in PROTOS
    }

    assert len(found) > 15
    assert {path: hits for path, hits in found.items() if hits} == {}
