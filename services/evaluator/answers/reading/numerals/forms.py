"""How numbers are written, in digits and in English words, and in which one form they are kept. Pure."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

# LaTeX writes 1{,}234 or 1\,234.
_THOUSANDS = r"(?:,|,\\!|\{,\}|\\,|['’\u00a0\u2009\u202f])\d{3}"
MOST_DIGITS = 100
_DIGITS = (
    rf"(?:\d{{1,3}}(?:{_THOUSANDS}){{1,30}}|\d{{1,3}}(?:[ ]\d{{3}}){{1,30}}(?![ ]?[\d/])|"
    rf"\d{{1,2}}(?:,\d{{2}}){{1,8}},\d{{3}}|\d{{1,{MOST_DIGITS}}})"
)
BLANKS = r"[ \t\u00a0\u2009\u202f]{0,3}"
_GLYPHS = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5), "⅘": (4, 5),
    "⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8),
}  # fmt: skip
_GLYPH = f"[{''.join(_GLYPHS)}]"


def _latex_fraction(above: str, below: str) -> str:
    return rf"\\[dt]?frac[ ]?\{{[ ]?(?P<{above}>\d{{1,12}})[ ]?\}}[ ]?\{{[ ]?(?P<{below}>\d{{1,12}})[ ]?\}}"


VALUE = re.compile(
    rf"(?P<sign>[-+−–]?|(?:minus|negative)[ ]){BLANKS}\\?(?P<currency>[$€£¥₹]|US\$|(?:USD|CHF|EUR|GBP|"
    rf"Rs\.?)[ ]?)?{BLANKS}(?P<minus>[-−]?)"
    rf"(?:(?P<european>\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}}){{1,10}},\d{{1,4}}|"
    rf"\d{{1,3}}(?:\.\d{{3}}){{1,10}},\d{{1,4}}|\d{{1,3}}(?:\.\d{{3}}){{2,10}}|"
    rf"0,\d{{1,9}}(?!,?\d)|\d{{1,9}},\d{{1,2}}(?=[ \u00a0](?!(?:and|or|to|are|is|in|of|for)\b)"
    rf"[A-Za-zäöüé]{{1,12}}\b(?![,;]))|"
    rf"\d{{1,9}},\d{{1,2}}(?=[ \u00a0\u202f]?[€£])|"
    rf"\d{{1,3}}\.\d{{3}}(?=[ \u00a0\u202f]?€(?![ ]?/))|"
    rf"(?:(?<=ist )|(?<=sind )|(?<=ergibt )|(?<=beträgt )|(?<=Antwort: ))\d{{1,9}},\d{{1,2}}|"
    rf"(?:(?<=€)|(?<=€ ))\d{{1,9}},\d{{1,2}})"
    rf"|(?P<digits>{_DIGITS}(?:\.\d{{1,{MOST_DIGITS}}})?|\.\d{{1,{MOST_DIGITS}}})"
    rf"(?:[eE](?P<exponent>[-+−]?\d{{1,3}})(?!\.?\d)|[ ]?(?:×|\\times|[x*·]|\\cdot)[ ]?10[ ]?(?:\^|"
    rf"\*\*)[ ]?\{{?(?P<power>[-−]?\d{{1,3}})\}}?)?"
    rf"(?:[ ]?(?P<glyph>{_GLYPH})|[ -]?{_latex_fraction('fa', 'fb')}|"
    rf"(?:[ ](?P<ma>\d{{1,9}}))?[ ]?[/⁄][ ]?(?P<mb>\d{{1,12}})(?![\d/]|[.,]\d))?"
    rf"|{_latex_fraction('la', 'lb')}|\\[dt]?frac(?P<ta>\d)(?P<tb>\d)|(?P<alone>{_GLYPH}))"
    rf"(?!(?:[\d,.]|\{{,\}}|\\,)*\d)"
)
SCALE = {
    "hundred": 2, "thousand": 3, "k": 3, "million": 6, "mio": 6, "mn": 6, "m": 6,
    "billion": 9, "bn": 9, "b": 9, "trillion": 12,
}  # fmt: skip
SCALED = re.compile(r"(?:[ \u00a0]?(?P<word>hundred|thousand|million|mio|billion|bn|mn|trillion)|(?P<letter>[KkMB]))\b")


def written(value: Fraction) -> str:
    """A decimal without needless digits where there is one, else "1/3"."""
    denominator, twos, fives = value.denominator, 0, 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    if denominator != 1:
        return f"{value.numerator}/{value.denominator}"
    places = max(twos, fives)
    digits = f"{abs(value.numerator) * 10**places // value.denominator:0{places + 1}d}"
    whole, part = (digits[:-places], digits[-places:]) if places else (digits, "")
    return f"{'-' if value < 0 else ''}{whole}{f'.{part}' if part else ''}"


def canonical_number(text: str) -> str:
    """A number without thousands separators, currency signs and needless digits, empty where it is none."""
    bare = re.sub(r"[\s,$€£{}\\]", "", text).replace("−", "-")
    try:
        value = Decimal(bare)
    except InvalidOperation:
        return ""
    return written(Fraction(value)) if value.is_finite() and abs(value.adjusted()) <= 400 else ""


def format_number(value: float) -> str:
    """A decimal without needless digits; the Hub keeps STS-B's 3.8 as a 32-bit 3.7999999523."""
    return f"{value + 0.0:.6g}"


def value_of(match: re.Match[str]) -> Fraction | None:
    """Of a match of `VALUE`; None for what is no number, as 1/0."""
    negative = (match["sign"] or match["minus"] or "+").strip().lower() not in ("+", "")
    if match["sign"] and match["minus"]:
        return None
    value = Fraction(0)
    if match["la"]:
        if not int(match["lb"]):
            return None
        value = Fraction(int(match["la"]), int(match["lb"]))
    elif match["ta"]:
        if match["tb"] == "0":
            return None
        value = Fraction(int(match["ta"]), int(match["tb"]))
    elif match["alone"]:
        value = Fraction(*_GLYPHS[match["alone"]])
    elif match["european"]:
        value = Fraction(re.sub(r"[.\s]", "", match["european"]).replace(",", "."))
    else:
        value = Fraction(re.sub(r"[^\d.]", "", match["digits"].replace("{,}", "").replace("\\,", "")))
        if power := match["exponent"] or match["power"]:
            if abs(int(power.replace("−", "-"))) > MOST_DIGITS:
                return None
            value *= Fraction(10) ** int(power.replace("−", "-"))
        if match["glyph"]:
            value += Fraction(*_GLYPHS[match["glyph"]])
        elif match["fa"]:
            if not int(match["fb"]):
                return None
            value += Fraction(int(match["fa"]), int(match["fb"]))
        elif match["mb"]:
            if not int(match["mb"]):
                return None
            whole = Fraction(int(match["ma"]), int(match["mb"])) if match["ma"] else None
            value = value / int(match["mb"]) if whole is None else value + whole
    return -value if negative else value


_UNITS = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
_TENS = {
    word: 10 * value
    for value, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2)
}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
NAMES = "|".join(sorted((*_UNITS, *_TENS, *_SCALES, "hundred"), key=len, reverse=True))
_WRITTEN = re.compile(
    rf"(?:(?P<minus>minus|negative)\s{{1,3}})?(?P<words>(?:{NAMES})(?:(?:\s{{1,2}}|-|"
    rf"\s{{1,2}}and\s{{1,2}})(?:{NAMES})\b){{0,12}})\b",
    re.IGNORECASE,
)
_PARTS_OF = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4, "fifth": 5,
    "fifths": 5, "sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10,
}  # fmt: skip
_PARTS = re.compile(
    rf"(?P<count>{'|'.join([*_UNITS][1:10])})[\s-](?P<of>{'|'.join(_PARTS_OF)})\b(?![\s-](?:of|and|or|to|a|an|the)\b)",
    re.IGNORECASE,
)
_AND_A_HALF = re.compile(r"[ ]and[ ]a[ ]half\b", re.IGNORECASE)
_GOES_ON = re.compile(r"[\s-]*(?:or|to|and(?! a half)|point|half|halves|thirds?|quarters?|fifths?|of)\b", re.IGNORECASE)


def in_words(text: str) -> tuple[str, int] | None:
    """The number that a text begins with, as digits, and where it ends."""
    if (part := _PARTS.match(text)) is not None:
        return written(Fraction(_UNITS[part["count"].lower()], _PARTS_OF[part["of"].lower()])), part.end()
    match = _WRITTEN.match(text)
    if match is None or _GOES_ON.match(text, match.end()):
        return None
    words = [word for word in re.split(r"[\s-]+", match["words"].lower()) if word != "and"]
    total = group = 0
    least = 10**12
    for word in words:
        if word in _SCALES:
            if _SCALES[word] >= least or not group:
                return None
            least = _SCALES[word]
            total, group = total + group * least, 0
        elif word == "hundred":
            if not 0 < group < 10:
                return None
            group *= 100
        elif word in _TENS:
            if group % 100:
                return None
            group += _TENS[word]
        else:
            if group % 10 or (group % 100 and _UNITS[word] > 9) or (group and not _UNITS[word]):
                return None
            group += _UNITS[word]
    value = Fraction(total + group)
    end = match.end()
    if (half := _AND_A_HALF.match(text, end)) is not None:
        value, end = value + Fraction(1, 2), half.end()
    return written(-value if match["minus"] else value), end
