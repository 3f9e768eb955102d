"""Texts compared as words: the normal forms of the field, and F1 of words. Pure."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_BEFORE = "\"'“”‘’«»‹›„`*_([{¿¡"
_AFTER = _BEFORE + ".,;:!?…)]}。、，！？；："
_QUOTES = "\"'“”‘’`"
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_BRACKETS = frozenset("()[]{}<>«»")
_SHORT = 2
"""Texts of up to this many characters would otherwise be found within other words: no in know, 5 in 15."""
_ARTICLE_WORDS = frozenset({"a", "an", "the"})


def plain(text: str) -> str:
    """Without what does not change an answer: case, runs of white space, marks around each word, and articles, unless
    it is only an article.

    Unlike SQuAD's form, marks within a word or before a number stay: 3.5 is not 35, and -5 not 5. They also stay where
    there is nothing else, except quotation marks: ? is not !, and "?" is ?. Brackets that are alone, or are one half of
    a pair within a word, are part of the answer: "> )" is not ">", and f(x) not f(x.
    """
    folded = unicodedata.normalize("NFC", text).casefold().split()
    words = [bare for word in folded if (bare := _without_marks(word))]
    return " ".join([word for word in words if word not in _ARTICLE_WORDS] or words or list(map(_unquoted, folded)))


def _without_marks(word: str) -> str:
    if not _BRACKETS.isdisjoint(word) and not any(map(str.isalnum, word)):
        return _unquoted(word)
    bare = word.lstrip(_BEFORE).rstrip(_AFTER)
    for opening, closing in _PAIRS.items():
        # A closing bracket whose opening one is within the word.
        if bare.count(opening) > bare.count(closing) and word.rstrip(_AFTER.replace(closing, "")).endswith(closing):
            bare += closing
    return bare


def _unquoted(word: str) -> str:
    """A word of marks alone, without quotation marks around it where something is left."""
    return word.strip(_QUOTES) or word


def spaced(text: str) -> str:
    """In lower case, with single blanks."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def stands_in(part: str, text: str) -> bool:
    """Whether the part is in the text; one of one or two characters as a whole word.

    Words in wide characters, such as Chinese, Japanese and Korean, are not separated by blanks: a word may begin next
    to one.
    """
    if not 0 < len(part) <= _SHORT:
        return part in text
    at = text.find(part)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(part) : at + len(part) + 1]
        if not (_go_on(before, part[0]) or _go_on(part[-1], after)):
            return True
        at = text.find(part, at + 1)
    return False


def _go_on(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word."""
    return bool(left and right) and all(map(_of_word, (left, right)))


def _of_word(character: str) -> bool:
    spaced_script = unicodedata.east_asian_width(character) not in ("W", "F")
    return spaced_script and (character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M")


def squad(text: str) -> str:
    """The normal form of SQuAD's evaluation (Rajpurkar et al. 2016): lower case, no punctuation, no articles."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def token_f1(given: Sequence[str], expected: Sequence[str]) -> float:
    """SQuAD's F1 of words as bags, 0 to 1. If either has no words, both must have none."""
    if not given or not expected:
        return float(list(given) == list(expected))
    shared = (Counter(given) & Counter(expected)).total()
    return 2 * shared / (len(given) + len(expected))
