"""A number that stands for itself, or on a scale. Pure; computed in decimals and fractions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.asked import NOTHING, Asked
from services.evaluator.answers.reading.kinds import negated
from services.evaluator.answers.reading.layers import Found
from services.evaluator.answers.reading.numerals.forms import (
    BLANKS,
    MOST_DIGITS,
    NAMES,
    SCALE,
    SCALED,
    VALUE,
    format_number,
    in_words,
    value_of,
    written,
)
from services.evaluator.answers.reading.numerals.units import same_quantity, unit_named, unit_of
from services.evaluator.answers.reading.places import FLAGS, line
from services.evaluator.answers.reading.prose.options import stem
from services.evaluator.answers.reading.statement import Mention, asserted, competing, measures_differ

_UNKNOWN = re.compile(
    r"(?:\\?(?:pi|sqrt|infty)\b|(?!x[ ](?:larger|more|as|faster|bigger|higher|the)\b)[πxyzni²³⁴⁵⁶](?![A-Za-z])|"
    r"[ ]?(?:π|√|\\pi|\\sqrt)|!(?=\w)|\^(?!\{?\\circ|\{?°)|\*\*(?=\d))"
)
_MORE = re.compile(
    rf"{BLANKS}(?:(?:[-–—+−×·*^~/,;=≈]|\\times|\\cdot|\\approx|\bor\b|\band\b|\bto\b|\bx\b|"
    rf"\bvs\b){BLANKS}[-+−$]?\.?\d|:\d|[ \u00a0]\.?\d)",
    FLAGS,
)
_SECOND = re.compile(
    r"[^\n.;=]{0,60}?\bor[ ](?:maybe[ ]|possibly[ ]|perhaps[ ]|about[ ]|even[ ])?(?:[a-z][ ]?=[ ]?)?[-−]?[$€£]?\d"
    r"|[^\n.;(=]{0,40}?\b(?:and|to|but|or)[ ](?:maybe[ ]|possibly[ ]|perhaps[ ]|about[ ]|even[ ])?"
    r"(?:[a-z][ ]?=[ ]?)?[-−]?[$€£]?\d"
    r"|[ ]?[A-Za-z°]{1,12},?[ ](?:and[ ]|[/|][ ]?)?\d|[ ]?[A-Za-z°]{1,12}(?:[ ]\([^)\n]{0,40}\))?[,;/][ ]\d",
    FLAGS,
)
"""A second number in the sentence that makes the first one but a part: "3 hours and 20 minutes"."""
_IS_OTHER = re.compile(r"[ ]is[ ](?:the[ ]number|the[ ]amount|how[ ]many|what|only|not)\b")
_OF_SOMEBODY = re.compile(r"\W*(?:she|he|they|there)\b", re.IGNORECASE)
"""With this a statement begins that others may follow."""
_GOES_ON = re.compile(
    r"\?|\b(?:half|twice|double|some|more|another|rest|remaining|each|away|gives?|gave|sells?|sold|buys?|bought|then|next|first|"
    r"we|let|find|calculate|compute|needs?|but|however|actually|wait|not sure|n['’]t sure|if|unless)\b",
    re.IGNORECASE,
)
"""By which a sentence goes on with a calculation, or doubts it."""
_UNFINISHED = re.compile(r"[ ]?[-−+*/×=][ ]?$")
_CENTS = re.compile(r" (?:dollars?|euros?|pounds?),?(?: and)? (?P<cents>\d{1,2}) (?:cents?|pence)\b", re.IGNORECASE)
_UNIT_POWER = re.compile(r"(?<=\d)([ ]?(?:mm|cm|dm|m|km|in|ft|yd|s))\^\{?[234]\}?")
_POWER = re.compile(r"(?<=[A-Za-z}])\^\{?[234]\}?")
_RESULT = re.compile(r"\A(?![^\n]*\bor\b)[^\n=]{1,200}=[ ]*(?P<said>[-−$€£]?\d[^=\n]{0,30})\Z")
_SUM = re.compile(r"\A[^\n=]{0,120}[+×*][^\n=]{1,200}=[ ]*(?P<said>[-−$€£]?\d[^=\n]{0,40})\Z")
_ONE = re.compile(
    r"one\b(?![,;:.]|\s*\Z|[ ](?:hundred|thousand|million|billion|half)\b)|(?<=the )one|(?<=er )one|(?<=est )one",
    re.IGNORECASE,
)
_OF = re.compile(r"[ ]of\b")
_MENTION = re.compile(
    r"(?<!\d:)(?<![A-Za-z0-9_.,\-−–])(?P<digit>(?:[-−]|(?<=\s)–|(?:minus|negative)[ ])?(?:[$€£₹][ ]?)?(?:\.?\d|[½⅓⅔¼¾]|"
    rf"\\[dt]?frac\b))|\b(?:minus |negative )?(?:{NAMES})\b",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:[\s\u00a0*_`\"'“”‘’«»<(\[{:：]|\\[(\[{]|\$(?!\d)|\\(?:boxed|fbox|text|textbf|mathbf|mathrm|displaystyle|underline)\b\{?"
    r"|(?:approximately|approx\.?|about|around|roughly|nearly|exactly|only|just|equal[ ]to|is|a[ ]total[ ]of|"
    r"total[ ]of|the|"
    r"number|value|of|that|there[ ]are|there[ ]is|she[ ]has|he[ ]has|they[ ]have|it[ ]is|likely|therefore|thus|"
    r"a(?=[ ](?:\d|zero|one|two|three|four|five|six|seven|eight|nine|ten)\b)|"
    r"clearly|almost|donc|dunque|entonces|dus)\b(?![ ]*not)"
    r"|[~≈=≅∼]|\\(?:approx|sim)\b|[A-Za-z](?:_\{?\w{1,8}\}?)?[ ]?=(?!=)){0,16}",
    FLAGS,
)
_EQUATION = re.compile(
    r"[\s\d.,!²³⁴⁵⁶+\-−–*×·/÷()\[\]{}^$€£%=≈]|\\(?:times|cdot|div|frac|left|right|text|approx|,|\(|\)|\[|\])|"
    r"(?<![A-Za-z])x(?![A-Za-z])"
)
_AROUND = " \t\r\n\f\v\u00a0*_`"
_OPENING = _AROUND + "$\\({"
_MOST_EQUATION = 300


_STARS = re.compile(r"[ ](?:stars?|points?)\Z")
_TOLERANCE = re.compile(r"(?:±|\\pm)[ ]{0,2}\Z")
_ONE_OF = re.compile(r"one of (?:the|these|those|its|their|our|his|her)\b", re.IGNORECASE)
_COMPOUND = re.compile(r"[ ][A-Za-z°]{1,12},?(?:[ ]and)?[ ]")
"""Between the parts of "3 hours and 20 minutes"."""
_SEVERAL = re.compile(r"[ ](?:pairs?|dozens?|sets?|groups?|packs?|boxes)[ ](?:of[ ])?(?P<thing>[a-z]{3,20})\b")
_YEAR = re.compile(r"\b(?:in|since|until|from|by)[ ](?:1\d{3}|20\d{2})\Z")
_COUNTED = re.compile(r"[ ](?:[a-z]{3,12}[ ])?(?P<thing>[a-z]{3,20}s)\b")
_NO_THINGS = frozenset(
    ("is", "was", "has", "does", "less", "plus", "minus", "times", "equals", "gives", "makes", "leaves")
)


def _counted(after: str) -> str:
    """What a number counts, in the singular, as the text after it says; empty where it does not."""
    match = _COUNTED.match(after)
    return stem(match["thing"]) if match is not None and match["thing"] not in _NO_THINGS else ""


class NumberKind:
    """A number: "1,234.50", "$18", ".5", "18 apples", "3/4", "1.8 billion". A comma parts thousands. `scale`: the
    lowest and highest value; then a comma may be the decimal one, and "4.5/5" or "4.5 out of 5" are 4.5.

    Answers are decimals without needless digits, or "1/3" where there is no such decimal. `cut`: the token limit ended
    the text, so a number at its very end may lack digits and does not count. `asked`: what the question says of it.
    """

    def __init__(self, scale: tuple[float, float] | None = None, *, cut: bool = False, asked: Asked = NOTHING) -> None:
        self._scale, self._cut, self._asked = scale, cut, asked

    def at(self, said: str, *, closed: bool, ends: bool) -> Found | None:
        lead = _LEAD.match(said)
        start = lead.end() if lead is not None else 0
        found = self._number(said, start, closed)
        if found is None:
            if (equation := self._equation(said)) is not None:
                return equation
            if not ends and (stated := _RESULT.search(line(said).rstrip(_AROUND + ".$"))) is not None:
                return self.whole(stated["said"])
            word = in_words(said[start : start + 200])
            found = Found(*word) if word is not None else None
            if found is None:
                return None
            found = Found(found.answer, start + found.end)
            return self._on_scale(found)
        if not found.answer:
            return self._equation(said) or found
        rest = line(said[found.end :])
        if negated(rest):
            return Found("", found.end, layers.NEGATED)
        if not ends and (sum_ := _SUM.search(rest)) is not None:
            result = self._number(sum_["said"], 0, closed=True)
            return result and Found(result.answer, found.end + len(rest), result.why)
        if ends and re.match(r"[^\n]{0,60}?[=≈]|[^\n.!]{0,200}?\d", rest):
            return None
        return found

    def whole(self, text: str) -> Found | None:
        bare = text.strip(_AROUND + "$").rstrip(_AROUND + "$.!")
        # Cut, it may lack digits.
        if not bare or len(bare) > 4 * MOST_DIGITS or (self._cut and text[-1:].isdigit()):
            return None
        if self.rates:
            bare = _STARS.sub("", bare.strip("()"))
        found = self._number(bare, 0, closed=True)
        if found is not None and found.answer and not bare[found.end :].strip(" %°$*`_)"):
            return Found(found.answer, len(text))
        is_equation = "=" in bare and "\n" not in bare and not re.search(r"[,;:][ ]+\w", bare.rpartition("=")[2])
        calculated = self._equation(bare) if is_equation else None
        return Found(calculated.answer, len(text)) if calculated is not None else None

    def first(self, text: str) -> Found | None:
        said = text.lstrip()
        first = line(said)
        if len(first) > 40 or ("=" in first and first != said.rstrip()) or (self._cut and first == said):
            return None
        found = self.at(first, closed=False, ends=True)
        if (
            found is None
            or (_OF_SOMEBODY.match(first) and re.search(r"[.!?]\s+\w", said[found.end :]))
            or not found.answer
            or (re.search(r"\d", first[found.end :]) and not first[found.end :].startswith((" (", "(")))
            or first[found.end : found.end + 1] in (".)", ")", ":")
        ):
            return None
        if re.match(r"[.)]\s", first[found.end :]):
            return None
        # In words it may be the subject of a sentence: "Three times seven is twenty-one."
        if not re.match(r"\W*\d", first) and re.search(r" (?:is|are|equals?|times|plus|minus) ", first[found.end :]):
            return None
        # A calculation in columns begins with a number.
        if re.match(r"\s*[-+−*×/=÷]", said[len(first) :]):
            return None
        return found

    @property
    def rates(self) -> bool:
        """Whether answers are on a scale."""
        return self._scale is not None

    def names(self, text: str) -> bool:
        """Whether a text holds a number."""
        return bool(self._mentions(text))

    def numbers(self, text: str) -> list[str]:
        """The numbers of a text."""
        return [each.answer for each in self._mentions(text)]

    def rivals(self, sentence: str, answer: str) -> list[str]:
        """The numbers after an answer that may as well be meant: neither given in the question, nor in another unit or
        of other things than it asks for."""
        said = _POWER.sub("", sentence)
        own, others = competing(said, answer, self._mentions)
        if own is None or (self._asked.thing and _counted(said[own.end :]) == self._asked.thing):
            return []
        unit = unit_of(said[own.start : own.end], said[own.end :])
        if unit is not None and unit == self._asked.unit:
            others = [each for each in others if unit_of(said[each.start : each.end], said[each.end :]) == unit]
        given = self.numbers(self._asked.text)
        return [each.answer for each in others if each.answer not in given]

    def is_given(self, answer: str) -> bool:
        """Whether the question has this number."""
        return answer in self.numbers(self._asked.text)

    def says_again(self, before: str, sentence: str) -> bool:
        """Whether a sentence states a number of the one before it in another unit."""
        mentions = self._mentions(sentence)
        if not mentions or not mentions[0].answer:
            return False
        again = (mentions[0].answer, sentence[mentions[0].end :])
        return any(
            same_quantity((each.answer, before[each.end :]), again) for each in self._mentions(before) if each.answer
        )

    def repeated(self, sentence: str, before: Sequence[str], results: Sequence[str]) -> Found | None:
        """The result that a sentence repeats, in another unit, too: "122 cents, or $1.22", or first, with further
        numbers that were named `before`: "it costs $68, and you save $12"."""
        mentions = [each for each in self._mentions(sentence) if each.answer]
        stated = next((each for each in mentions if each.answer in results), None)
        if stated is None:
            return None
        named = {number for each in before for number in self.numbers(each)}
        if all(each is stated or each.answer in named for each in mentions):
            return Found(stated.answer, len(sentence))
        if len(mentions) != 2:
            return None
        dollars = (" dollars" if sentence[each.start] == "$" else sentence[each.end :] for each in mentions)
        one, other = zip((each.answer for each in mentions), dollars, strict=True)
        return Found(stated.answer, len(sentence)) if same_quantity(one, other) else None

    def claimed(self, sentences: Sequence[str]) -> Found | None:
        """The number of a first sentence, where those after it only explain it."""
        first, *others = sentences
        if any(_GOES_ON.search(other) or self._mentions(other) for other in others):
            return None
        return self.only(first) if sum(each.answer != "" for each in self._mentions(first)) == 1 else None

    def only(self, sentence: str, before: str = "") -> Found | None:
        if len(sentence) > 600 or (self._cut and not sentence.rstrip().endswith((".", "!", "$", "*"))):
            return None
        said = _UNIT_POWER.sub(r"\1", sentence)
        found = asserted(said, self._mentions, before)
        return self._as_asked(said, found)

    def _as_asked(self, sentence: str, found: Found | None) -> Found | None:
        """The number that a sentence asserts, unless the question asks in another unit. Then, or if the sentence
        asserts none, the only one of its numbers that has the unit or counts the things that the question asks for."""
        asked = self._asked
        mentions = self._mentions(sentence)
        units = [unit_of(sentence[each.start : each.end], sentence[each.end :]) for each in mentions]
        if asked.several:
            return None
        if found is not None and not self.misses(sentence, found.answer):
            return None if asked.unit is None and measures_differ(sentence, mentions, units) else found
        # "9 and 12 minutes", "3 hours 20 minutes"
        parts = (
            (one.end, other.start)
            for (one, unit), (other, another) in pairwise(zip(mentions, units, strict=True))
            if unit is not None and another is not None and unit.dimension == another.dimension
        )
        if not all(each.answer for each in mentions) or any(_COMPOUND.fullmatch(sentence, *part) for part in parts):
            return None
        if all(units):
            those = {each.answer for each, unit in zip(mentions, units, strict=True) if unit == asked.unit}
        elif found is None and asked.thing and all(counted := [_counted(sentence[each.end :]) for each in mentions]):
            those = {each.answer for each, thing in zip(mentions, counted, strict=True) if thing == asked.thing}
        else:
            return None
        return Found(those.pop(), len(sentence)) if len(those) == 1 else None

    def misses(self, text: str, answer: str) -> bool:
        """Whether a text states this number in another unit than the question asks for, or as something else than what
        the question counts."""
        asked = self._asked
        stated = [each for each in self._every_mention(text) if each.answer == answer]
        if asked == NOTHING or not stated:
            return False
        said, after = text[stated[-1].start : stated[-1].end], text[stated[-1].end :]
        if asked.counts and _YEAR.search(text[: stated[-1].end]) is not None:
            return True
        if asked.thing and (several := _SEVERAL.match(after)) is not None:
            return stem(several["thing"]) == asked.thing
        unit = unit_of(said, after)
        if asked.unit is None or unit == asked.unit:
            return False
        if unit is None:
            # "37/200 = 0.185" is a share, where percent are asked for.
            is_share = "=" in text and 0 < Fraction(answer) < 1
            return is_share and asked.unit == unit_named("percent")
        return unit.dimension == asked.unit.dimension

    def _mentions(self, text: str) -> Sequence[Mention]:
        """The numbers of a text, in digits or words."""
        mentions = self._every_mention(text)
        # Otherwise "one" is a word as any: "the larger one".
        return [each for each in mentions if not _ONE.match(text, each.start)] or mentions

    def _every_mention(self, text: str) -> list[Mention]:
        mentions: list[Mention] = []
        place = 0
        for match in _MENTION.finditer(text):
            start = match.start()
            if start < place:
                continue
            if match["digit"]:
                found = self._number(text, start, closed=True)
            else:
                word = in_words(_OF.split(text[start : start + 200], maxsplit=1)[0])
                found = self._on_scale(Found(word[0], start + word[1])) if word is not None else None
            if found is not None:
                place = found.end
                if not _TOLERANCE.search(text, 0, start) and not _ONE_OF.match(text, start):
                    mentions.append(Mention(found.answer, start, found.end))
        return mentions

    def _number(self, said: str, start: int, closed: bool) -> Found | None:
        """The number at `start`, with an empty answer where it is but a part of what is said."""
        if self._scale is not None:
            return self._rating(said, start, closed)
        match = VALUE.match(said, start)
        if match is None:
            return None
        end = match.end()
        value = value_of(match)
        if value is None or _UNKNOWN.match(said, end):
            return Found("", end, layers.AMBIGUOUS)
        if (scaled := SCALED.match(said, end)) is not None:
            if scaled["letter"] in ("M", "B") and not match["currency"] and "." not in (match["digits"] or ""):
                return Found("", end, layers.AMBIGUOUS)
            value *= 10 ** SCALE[(scaled["word"] or scaled["letter"]).lower()]
            end = scaled.end()
        if (cents := _CENTS.match(said, end)) is not None and value.denominator == 1:
            value += Fraction(int(cents["cents"]), 100)
            end = cents.end()
        if said.startswith(" and a half", end):
            value += Fraction(1, 2)
            end += len(" and a half")
        if self._cut and not said[end:].strip() and not closed:
            return None
        rest = line(said[end:])
        if _UNFINISHED.match(rest) or (not closed and _IS_OTHER.match(rest)):
            return Found("", end, layers.AMBIGUOUS)
        if _MORE.match(rest) or (not closed and _SECOND.match(rest)):
            return Found("", end, layers.AMBIGUOUS)
        return Found(written(value), end)

    def _rating(self, said: str, start: int, closed: bool) -> Found | None:
        match = _RATING.match(said, start)
        if match is None or (self._cut and not closed and not said[match.end() :].strip()):
            return None
        assert self._scale is not None
        high = self._scale[1]
        if match["percent"] and high != 100:
            return None
        if match["more"] or (match["most"] and float(match["most"]) != high):
            return Found("", match.end(), layers.AMBIGUOUS)
        return self._on_scale(Found(match["value"].replace(",", ".").replace("−", "-"), match.end()))

    def _on_scale(self, found: Found) -> Found:
        if self._scale is None or not found.answer:
            return found
        low, high = self._scale
        value = float(Fraction(found.answer))
        if not low <= value <= high:
            return Found("", found.end, layers.OUT_OF_RANGE)
        return Found(format_number(value), found.end)

    def _equation(self, said: str) -> Found | None:
        """The right-hand side of "9 * 2 = 18"."""
        calculation = line(said.lstrip())[:_MOST_EQUATION].rstrip(_AROUND + ".")
        left, equals, right = calculation.rpartition("=")
        if not equals or not re.search(r"\d", left) or self._scale is not None:
            return None
        if _EQUATION.sub("", left).strip(_AROUND + "\\").strip():
            return None
        found = self._number(right.lstrip(_OPENING), 0, closed=False)
        if found is None or not found.answer or re.search(r"\d", right.lstrip(_OPENING)[found.end :]):
            return None
        if self._cut and line(said.lstrip()) == said.lstrip():
            return None
        return Found(found.answer, len(said) - len(said.lstrip()) + len(calculation))


_DECIMAL = r"[-+−]?(?:\d{1,9}(?:[.,]\d{1,100})?|\.\d{1,100})"
_OF_MOST = r"(?:\s{0,3}(?:/|out of|of)\s{0,3}(?P<most>\d{1,3}(?:\.0)?))?"
_SECOND_NUMBER = r"(?P<more>\s{0,3}(?:[-–—/~,;]|to\b|or\b|and\b)\s{0,3}\.?\d)?"
_RATING = re.compile(rf"(?P<value>{_DECIMAL})(?!\d|[.,]\d)(?P<percent>[ ]?%)?{_OF_MOST}{_SECOND_NUMBER}", FLAGS)
