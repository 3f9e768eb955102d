"""A number that stands for itself, or on a scale. Pure; computed in decimals and fractions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.kinds import REASON, negated
from services.evaluator.answers.reading.layers import Found
from services.evaluator.answers.reading.number_forms import (
    BLANKS,
    MOST_DIGITS,
    SCALE,
    SCALED,
    VALUE,
    format_number,
    value_of,
    written,
)
from services.evaluator.answers.reading.number_words import in_words
from services.evaluator.answers.reading.places import FLAGS, line

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
_UNFINISHED = re.compile(r"[ ]?[-−+*/×=][ ]?$")
_SEVERAL = re.compile(r"\d\s?(?:and|or|,)\s?[A-Za-z]\s?=")
"""More than one solution."""
_NOT_THIS = re.compile(r",? (?:not|rather than|instead of) (?:the )?[-−]?[$€£]?\d")
_ASIDE = re.compile(r" \([^()\n]{1,80}\)")
_CENTS = re.compile(r" (?:dollars?|euros?|pounds?),?(?: and)? (?P<cents>\d{1,2}) (?:cents?|pence)\b", re.IGNORECASE)
_SCALED_DIGITS = re.compile(rf"(?<=\d){SCALED.pattern}")
_LEFT = re.compile(r"\bleft\b[^,;]{0,60}\b(?:after|from|out of|of)\b", re.IGNORECASE)
_TO_DO = re.compile(r"\btakes?\b[^,;]{1,60}\d[^,;]{0,40} to [a-z]", re.IGNORECASE)
_UNIT_POWER = re.compile(r"(?<=\d)([ ]?(?:mm|cm|dm|m|km|in|ft|yd|s))\^\{?[234]\}?")
_RESULT = re.compile(r"\A(?![^\n]*\bor\b)[^\n=]{1,200}=[ ]*(?P<said>[-−$€£]?\d[^=\n]{0,30})\Z")
_SUM = re.compile(r"\A[^\n=]{0,120}[+×*][^\n=]{1,200}=[ ]*(?P<said>[-−$€£]?\d[^=\n]{0,40})\Z")
_AFTER_CLAUSE = re.compile(
    r"\A\W{0,4}(?:out of|of|from|after|with|since|when|starting|given|by) [^.]{0,100}?\d[^.]{0,60}, (?=\D)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.,\-−–])(?:[-−]|(?<=\s)–)?[$€£]?\.?\d")
_OF_SCALE = re.compile(r"\b(?:hundreds?|thousands?|millions?|billions?|dozens?|half)\b", re.IGNORECASE)
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


class NumberKind:
    """A number: "1,234.50", "$18", ".5", "18 apples", "3/4", "1.8 billion". A comma parts thousands. `scale`: the
    lowest and highest value; then a comma may be the decimal one, and "4.5/5" or "4.5 out of 5" are 4.5.

    Answers are decimals without needless digits, or "1/3" where there is no such decimal. `cut`: the token limit ended
    the text, so a number at its very end may lack digits and does not count.
    """

    def __init__(self, scale: tuple[float, float] | None = None, *, cut: bool = False) -> None:
        self._scale, self._cut = scale, cut

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

    def only(self, sentence: str) -> Found | None:
        return self._only(sentence) if _CONCLUDES.search(sentence) else None

    def alone(self, sentence: str) -> Found | None:
        """The number of a reply that is one sentence."""
        if not re.search(r"\d", sentence):
            words = list(_words(sentence))
            kept = [word for word in words if word[0] not in ("1",)] or words
            return self._on_scale(Found(kept[0][0], len(sentence))) if len(words) == 1 else None
        return self._only(sentence)

    def again(self, text: str, result: Found) -> Found | None:
        """The result of a calculation with which `text` begins, where its last sentence states it again."""
        numbers = [found for found in self._numbers(text[result.end :]) if found.answer]
        return result if any(found.answer == result.answer for found in numbers) else None

    def _numbers(self, text: str) -> Iterator[Found]:
        place = 0
        for match in _NUMBER.finditer(text):
            if match.start() >= place and (found := self._number(text, match.start(), closed=True)) is not None:
                yield found
                place = found.end

    def _only(self, sentence: str) -> Found | None:
        if len(sentence) > 600 or (self._cut and not sentence.rstrip().endswith((".", "!", "$", "*"))):
            return None
        sentence = REASON.split(sentence, maxsplit=1)[0]
        if (clause := _AFTER_CLAUSE.match(sentence)) is not None and len(
            list(self._numbers(sentence[clause.end() :]))
        ) == 1:
            sentence = sentence[clause.end() :]
        sentence = sentence.rpartition("; ")[2]
        sentence = _UNIT_POWER.sub(r"\1", sentence)
        if not re.search(r"\d", sentence):
            words = [] if " of " in sentence else [word for word in _words(sentence) if word[0] != "1"]
            return self._on_scale(Found(words[0][0], len(sentence))) if len(words) == 1 else None
        sentence = _NOT_THIS.split(sentence, maxsplit=1)[0]
        if _UNSAID.search(sentence) or _SEVERAL.search(sentence):
            return None
        sentence = _ASIDE.sub("", sentence) if re.search(r"\d[^()]*\(", sentence) else sentence
        _, equals, right = re.sub(r"≈|\\approx", "=", sentence).rpartition("=")
        if (
            equals
            and (found := self.at(right, closed=False, ends=False)) is not None
            and found.answer
            and not re.search(r"\d", right[found.end :])
        ):
            return found
        values: dict[str, Found] = {}
        place = 0
        for match in _NUMBER.finditer(sentence):
            if match.start() < place:
                continue
            found = self._number(sentence, match.start(), closed=False)
            if found is None or not found.answer:
                return None
            if len(values) == 1 and (
                _LEFT.search(sentence[place : match.start()]) or _TO_DO.search(sentence[: match.start()])
            ):
                break
            values[found.answer] = found
            place = found.end
        if len(values) != 1 or _OF_SCALE.search(_SCALED_DIGITS.sub("", sentence)):
            return None
        return next(iter(values.values()))

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


def _words(sentence: str) -> Iterator[tuple[str, int]]:
    """Numbers in words, and where they end in what follows their beginning."""
    place = 0
    for match in re.finditer(r"\b[A-Za-z]", sentence):
        if match.start() >= place and (found := in_words(sentence[match.start() :])) is not None:
            yield found
            place = match.start() + found[1]


_DECIMAL = r"[-+−]?(?:\d{1,9}(?:[.,]\d{1,100})?|\.\d{1,100})"
_OF_MOST = r"(?:\s{0,3}(?:/|out of|of)\s{0,3}(?P<most>\d{1,3}(?:\.0)?))?"
_SECOND_NUMBER = r"(?P<more>\s{0,3}(?:[-–—/~,;]|to\b|or\b|and\b)\s{0,3}\.?\d)?"
_RATING = re.compile(rf"(?P<value>{_DECIMAL})(?![\d%]|[.,]\d){_OF_MOST}{_SECOND_NUMBER}", FLAGS)
_UNSAID = re.compile(
    r"\?|\b(?:let me know|hope|for example|e\.g\.|step|question|problem|not|cannot|unclear|or|between|if|either|"
    r"maybe|might|could|"
    r"options?|first|next|then|each(?! of| \w+ (?:gets?|pays?|has|costs?)))\b|n['’]t\b",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"^\W{0,4}(?:therefore|thus|hence|so|in total|altogether|overall|finally|consequently|in conclusion|"
    r"this means|that means|that is|"
    r"this gives|that leaves|comes? to|came to|amounts? to|adds? up to|works? out|gives)\b"
    r"|\*\*|\b(?:in total|altogether|in all|total)\b|\b(?:is|are|was|were|has|have|had|"
    r"makes?|made|costs?|earns?|earned|pays?|paid|"
    r"spends?|spent|won|lost|saves?|saved|scored?|receives?|received|owes?|owed|covers?|covered|ate|"
    r"gets?|got|sold|needs?|takes?|took|occurs?|appears?|contains?|includes?|will|equals?|left|remains?|rate|carries|weighs)\b|≈",
    re.IGNORECASE,
)
