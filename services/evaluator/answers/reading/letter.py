"""The letter of an option. Pure.

A letter before a word is that option, but "A" and "I" are words themselves: there only a reason may follow
("Answer: A because …") or the option's own text. A second letter after "or", "and", a comma or a slash makes the answer
ambiguous; other text after the letter does not ("Answer: B. A lesion of the nerve"). The text of one option, whole and
in place of its letter, counts as that option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.kinds import REASON, negated
from services.evaluator.answers.reading.layers import Found
from services.evaluator.answers.reading.letter_patterns import patterns
from services.evaluator.answers.reading.places import line

_ALSO_A_WORD = frozenset("AI")
_REASON = re.compile(
    r"[\s\u00a0]+(?:because|since|as|for|is|due|was|seems|would|which|follows|[(\[–—-])", re.IGNORECASE
)
_WORD_FOLLOWS = re.compile(r"[\s\u00a0]+\w")
_TRIMMED = " \t\r\n\u00a0*_`\"'“”‘’«»<>()[]{}$.,;:!?…✓"
_END = re.compile(
    r"[\s)\]*_`\"'”’}$]{0,8}(?:[.!]|,?[ ](?:because|since|as|which)\b|\n|$|:[ ]|[ ][-–—][ ])", re.IGNORECASE
)
_LISTED = re.compile(
    r"^[ \t>*_#-]{0,8}(?:option[ ]|choice[ ])?\(?(?P<letter>[A-Z])(?:\*\*)?(?:[).:]|[ ]?[–—-][ ])", re.MULTILINE
)
_SENTENCE_NO = re.compile(
    r"\b(?:not|no|never|neither|nor|wrong|incorrect|except|unlike|rather|instead|cannot|without|false|or|might|"
    r"could|unsure|"
    r"uncertain|perhaps|maybe|possibly|eliminate\w*|exclude\w*|if)\b|n['’]t\b|\?|=\s*$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,.;:!–—\n]|\s-\s|\s(?:because|since)\b")
_INTRODUCED = re.compile(r"^(?:option [0-9] ?[:.)]? ?|(?:the|an?) |[a-z] ?= ?)[\"'“‘]?")
_LATEX = re.compile(
    r"\\(?:left|right|displaystyle|,|;|!| )|\\(?:text|mathrm|mathbf)\{([^{}]*)\}|\^?\{?\\circ\}?|\\(?=[A-Za-z%])"
)
_LIGHTLY = ' \t\r\n\u00a0*`"“”.!✓'
_IF = re.compile(r"[^.\n]{0,20}?\bif\b", re.IGNORECASE)
_JUDGED = re.compile(
    r"^[ \t>*_#-]{0,8}(?:option[ ]|choice[ ])?\(?(?P<letter>[A-Z])(?:\*\*)?(?:[).:]|[ ]?[–—-])[ *_]{1,4}"
    r"(?:[^.:\n]{1,200}[.:–—-][ *_]{1,4})?(?P<no>in)?(?P<right>correct|right|wrong|yes|no)\b",
    re.MULTILINE | re.IGNORECASE,
)
_ORDINAL = re.compile(
    r"\b(?P<word>first|second|third|fourth|fifth)[ ](?:option|choice|answer|statement|one|alternative)\b", re.IGNORECASE
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_CITED = re.compile(
    r"[\"“*]{1,3}(?P<said>[^\"“”*\n]{1,200})[\"”*]{1,3}(?:[ ](?:fits|is|works|matches|seems)\b(?![ ]not)|[ ,.]|$)"
)
_ANOTHER = re.compile(r"[(*_`]{0,3}[A-Z](?:[).,;:/]|\s*$)")
_CONFIDENCE = re.compile(r"\([^()]{0,40}\b(?:confiden|certain|sure|\d{1,3} ?%)[^()]{0,40}\)\.?")
_SURELY = re.compile(
    r"(?:probably|likely|most likely|definitely|certainly|clearly|obviously),? (?=\(?[A-Z]\b)", re.IGNORECASE
)
_SHORT = 400


class LetterKind:
    """One of so many capital letters from "A" on; `options` are their texts, as far as they are known."""

    def __init__(self, count: int, options: Mapping[str, str] | None = None) -> None:
        self._patterns = patterns(count)
        self._options = {letter: _bare(text) for letter, text in (options or {}).items()}
        self._exact = {letter: text.strip(_LIGHTLY).casefold() for letter, text in (options or {}).items()}

    def at(self, said: str, *, closed: bool, ends: bool) -> Found | None:
        match = self._patterns.at.match(said)
        if match is not None and (found := self._letter(said, match, closed, ends)) is not None:
            return found
        return self._at_option(said, closed)

    def whole(self, text: str) -> Found | None:
        if len(text) > 4000:
            return None
        if letter := self._option(text):
            return Found(letter, len(text))
        match = self._patterns.whole.fullmatch(text.strip(" \t\r\n\u00a0‘’“”«»✓"))
        if match is None:
            return None
        letter, rest = match["answer"].upper(), _bare(match["text"] or "")
        if _CONFIDENCE.fullmatch(match["text"] or ""):
            rest = ""
        if match["answer"].islower() and rest and not match["mark"]:
            return None
        if rest and rest != self._options.get(letter) and self.mentioned(text) - {letter}:
            return None
        one_line = "\n" not in (match["text"] or "").strip()
        if rest and not self._says_option(rest, letter, match["mark"] is not None and len(rest) < 200, one_line):
            return None
        return Found(letter, len(text))

    def first(self, text: str) -> Found | None:
        said = _SURELY.sub("", text.lstrip(), count=1)
        match = self._patterns.first.match(said)
        if match is None:
            begun = _CLAUSE.split(line(said), maxsplit=1)
            letter = self._option(begun[0]) if len(begun) > 1 else ""
            if letter and self.mentioned(line(said)) - {letter}:
                return None
            return Found(letter, len(begun[0])) if letter else None
        letter, rest = match["answer"], line(said[match.end() :])
        if _ANOTHER.match(rest):
            return None
        if {found["letter"] for found in _LISTED.finditer(said[match.end() :])} - {letter}:
            return None
        if negated(said[match.end() :]) or self._patterns.other.match(rest):
            return None
        offered = self._options.get(letter)
        if offered and match["mark"] and rest.strip():
            # "B) oxygen", where B is carbon dioxide, names two options.
            named = [each for each, option in self._options.items() if option and _bare(rest).startswith(option)]
            if named and letter not in named:
                return None
        return Found(letter, match.end())

    def only(self, sentence: str) -> Found | None:
        sentence = REASON.split(sentence, maxsplit=1)[0]
        if len(sentence) > _SHORT or sentence.startswith("("):
            return None
        sentence = re.split(r",? but ", sentence)[-1]
        right = [match["answer"] or match["after"] or match["so"] for match in self._patterns.right.finditer(sentence)]
        if len(set(map(str.upper, right))) == 1 and not _SENTENCE_NO.search(sentence):
            return Found(right[0].upper(), len(sentence))
        if _SENTENCE_NO.search(sentence):
            return None
        if len(words := re.findall("[A-Za-z]+", sentence)) == 1 and (bare := self._patterns.whole.fullmatch(words[0])):
            return Found(bare["answer"].upper(), len(sentence))
        if (alone := self._patterns.alone.search(sentence)) is not None:
            return Found(alone["answer"], len(sentence))
        said = self.mentioned(sentence) or self._counted(sentence)
        return Found(said.pop(), len(sentence)) if len(said) == 1 else None

    def _counted(self, sentence: str) -> set[str]:
        """The options that a sentence names by their places, as "the second option"."""
        places = {_ORDINALS.index(match["word"].lower()) for match in _ORDINAL.finditer(sentence)}
        return {chr(ord("A") + place) for place in places if place < len(self._options)}

    def concluded(self, said: str) -> Found | None:
        """The option that a concluding sentence is about: "B is grammatical"."""
        match = self._patterns.about.match(said)
        if match is None or negated(said[match.end("answer") :]) or _SENTENCE_NO.search(line(said)):
            return None
        others = set(re.findall(r"(?<![\w'’])[A-Z](?![\w'’])", line(said))) - {match["answer"], "I"}
        return None if others else Found(match["answer"], match.end())

    def subject(self, text: str) -> Found | None:
        """The option with which a reply begins, and the only one that it speaks of: "D is the odd one out"."""
        found = self.concluded(re.split(r"(?<=[.!?])\s", text.lstrip(), maxsplit=1)[0])
        letters = set(re.findall(r"(?<![\w'’])[B-Z](?![\w'’])", text))
        return found if found is not None and letters <= {found.answer} and found.answer != "A" else None

    def right(self, text: str) -> Found | None:
        """The only option that a text calls the right one."""
        said = {}
        for match in self._patterns.right.finditer(text):
            letter = match["answer"] or match["after"] or match["so"]
            if not _SENTENCE_NO.search(re.split(r"[.;\n]", text[: match.start()])[-1]) and not _IF.match(
                text, match.end()
            ):
                said[letter] = match.end()
        return Found(*said.popitem()) if len(said) == 1 else None

    def denied(self, text: str, letter: str) -> bool:
        """Whether a text says anywhere that it is not this option, and nowhere that it is."""
        said = re.search(rf"(?:\bnot|n['’]t)[ ](?:option[ ]|choice[ ])?\(?{letter}\b(?!['’])", text)
        return said is not None and re.search(rf"(?<![\w'’]){letter}(?![\w'’])", text[said.end() :]) is None

    def cited(self, text: str) -> Found | None:
        """The only option that a text names with its letter behind it: "paracetamol (B)"."""
        found = {}
        for match in self._patterns.cited.finditer(text):
            option = self._options.get(match["letter"], "")
            before = re.split(r"[.;\n]", text[max(0, match.start() - 300) : match.start()])[-1]
            if option and _bare(before).endswith(option):
                if _SENTENCE_NO.search(before):
                    return None
                found[match["letter"]] = match.end()
        return Found(*found.popitem()) if len(found) == 1 >= len(self.mentioned(text)) else None

    def judged(self, text: str) -> Found | None:
        """The only option that a list calls right and not wrong."""
        verdicts = {match["letter"]: _is_right(match) for match in _JUDGED.finditer(text)}
        right = [letter for letter, is_right in verdicts.items() if is_right]
        return Found(right[0], len(text)) if len(right) == 1 < len(verdicts) else None

    def ticked(self, text: str) -> Found | None:
        """The option on the only line with a tick, in a list of all."""
        marked = [each for each in text.split("\n") if "✓" in each]
        match = _LISTED.match(marked[0]) if len(marked) == 1 else None
        return Found(match["letter"], len(text)) if match is not None else None

    def ends_list(self, text: str, last: str) -> bool:
        """Whether the last line is one of several that go through the options."""
        return _LISTED.match(last) is not None and len({match["letter"] for match in _LISTED.finditer(text)}) > 1

    def mentioned(self, text: str) -> set[str]:
        """The options that a text names, by letter or by text."""
        named = {match["answer"] for match in self._patterns.named.finditer(text)}
        plain = f" {' '.join(map(_bare, text.split()))} "
        said = {
            letter
            for letter, option in self._options.items()
            if (len(option) > 2 or any(map(str.isdigit, option))) and f" {option} " in plain
        }
        # The text of one option may hold that of another.
        longest = {
            letter
            for letter in said
            if not any(other != letter and self._options[letter] in self._options[other] for other in said)
        }
        return named | longest

    def _letter(self, said: str, match: re.Match[str], closed: bool, ends: bool) -> Found | None:
        letter, after = match["answer"].upper(), said[match.end() :]
        rest = line(after)
        bare = not closed and letter in _ALSO_A_WORD and not match["named"]
        if (
            bare
            and _WORD_FOLLOWS.match(rest)
            and not _REASON.match(rest)
            and _bare(rest) != self._options.get(letter, "")
        ):
            return None
        if match["answer"].islower() and not closed and _WORD_FOLLOWS.match(rest) and not _REASON.match(rest):
            return None
        if ends and not (_END.match(rest) or (_bare(rest) and self._says_option(_bare(rest), letter, False))):
            return None
        if negated(rest):
            return Found("", match.end(), layers.NEGATED)
        other = self._patterns.other.match(rest)
        if other is not None and other["other"].upper() != letter:
            return Found("", match.end(), layers.AMBIGUOUS)
        return Found(letter, match.end())

    def _says_option(self, bare: str, letter: str, otherwise: bool, more: bool = True) -> bool:
        """Whether a text is the letter's own option, or with `more` begins with it; `otherwise` where
        it is not known."""
        option = self._options.get(letter, "")
        if not option:
            return otherwise
        begins = more and len(option) > 2 and re.match(rf"{re.escape(option)}(?!\w)", bare) is not None
        return bare == option or begins

    def _at_option(self, said: str, closed: bool) -> Found | None:
        text = said.lstrip()
        first = text if closed else line(text)
        if letter := self._option(first):
            return Found(letter, len(said) - len(text) + len(first))
        if (quoted := _CITED.match(first)) is not None and (letter := self._option(quoted["said"])):
            return Found(letter, len(said) - len(text) + quoted.end())
        sentence = re.split(r"(?<=[\w)])[.!](?:\s|$)|\s\(|,? i\.e\.|,? (?:because|since|as)\b", first, maxsplit=1)[0]
        letter = self._option(sentence) if len(sentence) < len(first) else ""
        return Found(letter, len(said) - len(text) + len(sentence)) if letter else None

    def _option(self, text: str) -> str:
        """The letter of the only option with this text, or an empty string."""
        if len(text) > 4000:
            return ""
        exact = text.strip(_LIGHTLY).casefold()
        if len(same := [letter for letter, option in self._exact.items() if option == exact]) == 1 and exact:
            return same[0]
        said = _bare(text)
        for bare in (said, _INTRODUCED.sub("", said)):
            same = [letter for letter, option in self._options.items() if option == bare] if bare else []
            if len(same) == 1:
                return same[0]
        return ""


def _is_right(verdict: re.Match[str]) -> bool:
    return not verdict["no"] and verdict["right"].lower() in ("correct", "right", "yes")


def _bare(text: str) -> str:
    if "{" in text:
        text = re.sub(r"(?<=[\^_])\{(\w{1,3})\}", r"\1", text)
    if "\\" in text:
        text = re.sub(r"\\[dt]?frac\{(\w{1,9})\}\{(\w{1,9})\}", r"\1/\2", text)
        text = _LATEX.sub(lambda found: "°" if "circ" in found[0] else found[1] or "", text)
    return " ".join(text.replace("’", "'").strip(_TRIMMED).split()).casefold()
