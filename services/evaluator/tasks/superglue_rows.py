"""What SuperGLUE's rows say that its columns do not: spans marked, connectives chosen, groups named, answers judged.

The words of log-likelihood mode are lm_eval's (0.4.13).
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

from services.evaluator.answers.words import squad, token_f1

Row = Mapping[str, Any]

_CONNECTIVES = {"cause": "because", "effect": "therefore"}
_ASKED = {"cause": "what caused this", "effect": "what followed from this"}
_MOST_QUESTIONS = 100_000
_HIGHLIGHT = "\n@highlight\n"
_PLACEHOLDER = "@placeholder"
# WSC's texts separate words and marks by blanks. Replaced in this order.
_TOKENISED = ((" n't", "n't"), (" )", ")"), ("( ", "("), ('" ', '"'), (' "', '"'))
_MARKS = string.punctuation
_BEFORE_MARK = re.compile(r" (?=['.,])")


def copa(row: Row) -> Row:
    """The premise without its full stop and with a connective, and each choice as its continuation."""
    kind = row["question"]
    return {
        **row,
        "asked": _ASKED[kind],
        "begun": f"{row['premise'].strip()[:-1]} {_CONNECTIVES[kind]}",
        "continued1": _continued(row["choice1"]),
        "continued2": _continued(row["choice2"]),
    }


def multirc(row: Row) -> Row:
    """Answers are gathered by question, questions by passage. A question's number counts within its passage."""
    passage, question = row["idx"]["paragraph"], row["idx"]["question"]
    return {**row, "passage_id": str(passage), "question_id": passage * _MOST_QUESTIONS + question}


def record(row: Row) -> Row:
    """The passage without its markup, in two shapes, and the statement split at its placeholder.

    An answer that is among the entities comes first, for few-shot examples.
    """
    entities = sorted(set(row["entities"]))
    text, *highlights = row["passage"].strip().split(_HIGHLIGHT)
    before, _, after = row["query"].partition(_PLACEHOLDER)
    return {
        "read": "\n".join((text, *(f"- {highlight}" for highlight in highlights))),
        "told": f"{text}\n\n" + "".join(f"  - {highlight}.\n" for highlight in highlights),
        "query": row["query"],
        "before": before,
        "after": after,
        "entities": entities,
        "listed": "; ".join(entities),
        "answers": sorted(set(row["answers"]), key=lambda answer: (answer not in entities, answer)),
        "passage_id": str(row["idx"]["passage"]),
    }


def wic(row: Row) -> Row:
    """The word in the form that the first sentence has."""
    return {**row, "shape": row["sentence1"][row["start1"] : row["end1"]]}


def wsc(row: Row) -> Row:
    """The text with asterisks around the pronoun, which is given by its index among the words.

    One or two rows give a wrong index. `marked` is lm_eval's, which trusts it; `shown` marks the nearest such word.
    """
    text, pronoun, place = row["text"], row["span2_text"], row["span2_index"]
    before = " ".join(text.split()[:place])
    after = text[len(before) + len(pronoun) + 1 :]
    words = text.split()
    alike = [at for at, word in enumerate(words) if word.strip(_MARKS) == pronoun]
    found = min(alike, key=lambda at: abs(at - place), default=None)
    if found is not None:
        words[found] = words[found].replace(pronoun, f"*{pronoun}*")
    return {**row, "marked": _detokenised(f"{before} *{pronoun}*{after}"), "shown": _detokenised(" ".join(words))}


def axg(row: Row) -> Row:
    """Neighbouring rows are a pair that differs in the pronoun's gender."""
    return {**row, "pair": row["idx"] // 2}


def entity_match(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
    """ "correct" and "f1" (of words), each the best over the right answers. Case, articles and punctuation do not
    count, as in SQuAD's evaluation (Rajpurkar et al. 2016), which ReCoRD's is."""
    given = squad(answer)
    expected = [squad(right) for right in answers]
    return {
        "correct": float(given in expected),
        "f1": max((token_f1(given.split(), right.split()) for right in expected), default=0.0),
    }


def _continued(choice: str) -> str:
    # The blank is lm_eval's, which puts another one between context and continuation.
    return f" {choice[:1].lower()}{choice[1:]}"


def _detokenised(text: str) -> str:
    for old, new in _TOKENISED:
        text = text.replace(old, new)
    return _BEFORE_MARK.sub("", text)
