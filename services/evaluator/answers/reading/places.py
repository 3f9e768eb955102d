"""Where a text states an answer: the rules of each layer, as patterns after or within which it stands. Pure.

Every pattern has bounded repetition, so that time is linear in the text whatever it holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.layers import Layer

# ASCII, or "posıtive" with a Turkish ı would match without being any label.
FLAGS = re.IGNORECASE | re.ASCII
BLANK = r"[\s\u00a0]"
DECORATION = (
    r"(?:[\s\u00a0*_`\"'“”‘’«»<(\[{}$:：]|\\[(\[$]){0,12}"
    r"(?:\\(?:boxed|fbox|text|textbf|mathbf|mathrm|underline)\{[\s*_`\"'(\[]{0,4}){0,3}"
)
"""What may stand between a marker and the answer."""
_MARKS = rf"(?:{BLANK}|[*_`\"']){{0,6}}"
_WORD = r"(?<![A-Za-z0-9])"
_IS = (
    r"(?:is|was|are|(?:would|must|should|will|has[ ]to|might|could)[ ](?:then[ ]|therefore[ ]|thus[ ])?be|"
    r"remains|equals)"
)
_OTHER_WORDS = (
    r"antwort|lösung|respuesta|réponse|reponse|resposta|risposta|antwoord|svar|odpowiedź|[Оо]твет|答案|正解|答え|回答|解答|"
    r"정답|답|jawaban|vastaus|cevap|[Đđ]áp[ ]án|[Вв]ідповідь|odpověď|răspuns|válasz|[Αα]πάντηση|الإجابة|الجواب|उत्तर"
)
_SAID_OF = (
    r"(?:correct|right|best|final|true|appropriate|suitable|accurate|plausible|likely|probable|sensible|proper|my|"
    r"only|"
    r"chosen|selected|predicted|overall|sorted|alphabetical)"
)
_THING = (
    r"(?:answer|option|choice|response|letter|label|statement|conclusion|classification|category|class|rating|score|"
    r"sentiment|relation|relationship|judgement|judgment|verdict|value|result|total|number|list|order|sequence|title|summary|"
    r"explanation|completion|ending|description|translation|one)"
)
_ABOUT = (
    r"(?:[ ](?:here|to|for|among|amongst|of|from|between|based|in|that|which|as|given|choice|"
    r"option)\b[^\n.:;!?]{0,80}?)?"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """Where an answer is stated. With a group `said` the pattern holds the whole of it, else it begins at the match's
    end. `weak`: counts only where no other rule finds one. `ends`: the sentence must end with the answer."""

    how: str
    layer: Layer
    pattern: re.Pattern[str]
    weak: bool = False
    ends: bool = False
    is_json: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """One match: what is said there, and whether the rule holds the whole of it."""

    rule: Rule
    start: int
    end: int
    stated: str
    said: str
    closed: bool

    @property
    def supposed(self) -> bool:
        """Whether the text only says what the answer would be."""
        return _SUPPOSED.search(self.stated) is not None


def _rule(how: str, layer: Layer, pattern: str, **more: bool) -> Rule:
    return Rule(how, layer, re.compile(pattern, FLAGS | re.MULTILINE), **more)


RULES: tuple[Rule, ...] = (
    _rule(layers.BY_MARKER, Layer.STRICT, rf"{_WORD}answer{_MARKS}(?:is\b{_MARKS})?[:：]"),
    _rule(layers.BY_SENTENCE_MARKER, Layer.STRICT, rf"{_WORD}answer{_MARKS}is\b", weak=True),
    _rule(
        layers.BY_BOX,
        Layer.MARKED,
        r"\\(?:boxed|fbox)[ ]{0,2}\{(?P<said>(?:[^{}\n]|\{(?:[^{}\n]|\{[^{}\n]{0,200}\}){0,400}\}){0,1000})\}",
    ),
    _rule(layers.BY_HASHES, Layer.MARKED, r"^[ \t]{0,8}####(?!#)[ \t]{0,8}(?=\S)(?!(?:final|answer|the)\b)"),
    _rule(
        layers.BY_TAG,
        Layer.MARKED,
        r"[<\[](?:final_?)?(?P<tag>answer|result|choice|solution|"
        r"score|rating|label|letter|option|number|value|prediction|verdict)[>\]](?P<said>[^<\[]{0,2000})[<\[]/(?:final_?)?(?P=tag)[>\]]",
    ),
    _rule(layers.BY_BRACKETS, Layer.MARKED, r"\[\[(?P<said>[^\[\]\n]{1,200})\]\]"),
    _rule(
        layers.BY_HEADING,
        Layer.MARKED,
        r"^[ \t]{0,8}(?:#{1,6}[ \t]{0,4}|\*\*[ \t]{0,2}|__)?(?:the[ ])?(?:(?:my|final|correct)[ ])?(?:final[ ])?"
        r"(?:answer|choice|result|verdict|decision|classification|prediction|label|rating|score)"
        r"[ \t]{0,2}:?(?:\*\*|__)?:?[ \t]{0,8}\n",
    ),
    _rule(
        layers.BY_FIELD,
        Layer.MARKED,
        r"[\"'“](?:final_?|correct_?|the_?|your_?|my_?)?(?:answer|choice|label|option|prediction|"
        r"result|score|rating|similarity|sentiment|verdict|classification|category|intent|emotion|topic|language|"
        r"decision|judge?ment|relation)[\"'”]\s{0,8}:\s{0,8}"
        r"(?P<said>\"(?:[^\"\\\n]|\\.){0,2000}\"|'(?:[^'\\\n]|\\.){0,2000}'|true\b|false\b|-?\d[\d.eE+-]{0,40})",
        is_json=True,
    ),
    _rule(
        layers.BY_DASH,
        Layer.MARKED,
        rf"{_WORD}(?:answer{_MARKS}(?:[-–—=→⇒➜]|->|=>|is{BLANK}{{0,3}}(?:[=→⇒]|->)){{1,2}}|"
        r"(?:final[ ])?ans(?:\.[ ]?[:=]?|[ ]?[:=])|"
        rf"final[ ]answer{_MARKS}[,;]?(?=[ \t*_`]{{0,6}}\S)(?![ \t*_`]{{0,6}}(?:is|was|remains|to|which)\b)|"
        rf"final(?:[ ](?:choice|pick|verdict|decision|label|score|rating|result|number|selection))?{_MARKS}:)",
    ),
    _rule(
        layers.BY_WORD,
        Layer.MARKED,
        rf"(?:{_OTHER_WORDS})[\s*_`]{{0,6}}(?:[:：]|[是はは为為][:：]?|lautet\b|"
        r"(?:ist|es|est)\b(?:[ ](?:also|daher|somit|donc|entonces)\b)?)",
    ),
    _rule(
        layers.BY_SENTENCE,
        Layer.LENIENT,
        rf"{_WORD}(?:person|people|one|reader|reviewer)[ ]would[ ]"
        r"(?:therefore[ ]|thus[ ]|then[ ])?(?:answer|say|conclude)(?:[ ]that)?[:,]?",
        weak=True,
        ends=True,
    ),
    _rule(
        layers.BY_WORD,
        Layer.LENIENT,
        rf"{_WORD}(?:a|la|alternativa|opci[oó]n|op[cç][aã]o|resposta|respuesta|opzione|risposta)[ ]"
        r"(?:correcta|correta|corretta)[ ](?:es|é|è)(?:[ ](?:la|a|o|el))?"
        r"(?:[ ](?:letra|lettera|opci[oó]n|op[cç][aã]o|alternativa))?[ ]",
        weak=True,
    ),
    _rule(
        layers.BY_SENTENCE,
        Layer.LENIENT,
        rf"{_WORD}(?:most[ ])?{_SAID_OF}[ ](?:(?:and|"
        rf"most)[ ]\w{{1,20}}[ ])?{_THING}\b{_ABOUT}{BLANK}{{0,3}}(?:{_IS}\b|[:=→–—-]|->)"
        rf"(?:[ ](?:therefore|thus|hence|then|clearly|definitely|indeed|most[ ]likely|likely|probably|"
        rf"simply)\b){{0,2}},?",
        weak=True,
    ),
    _rule(
        layers.BY_SENTENCE,
        Layer.LENIENT,
        rf"{_WORD}answer\b{_ABOUT}[ ]{_IS}\b(?:[ ](?:therefore|thus|hence|then|clearly|definitely|indeed|"
        rf"most[ ]likely|likely|"
        rf"probably|simply)\b){{0,2}},?",
        weak=True,
    ),
    _rule(
        layers.BY_SENTENCE,
        Layer.LENIENT,
        rf"{_WORD}I(?:['’](?:d|ll|m|ve)|[ ](?:would|will|have[ ]to|must|should|can|am))?[ ](?:therefore[ ]|"
        rf"thus[ ]|then[ ]|finally[ ])?"
        r"(?:choose|chose|chosen|choosing|pick|picked|picking|select|selected|selecting|answer|conclude|"
        r"(?:go|going|went)(?=[ ](?:with|for|[A-J])\b)|opt|vote|lean|leaning|stay|stick|settle|"
        r"settling|mark|meant|deem|"
        r"say|rate|classify|label|give|assign|believe|think|judge)\b"
        rf"(?:[ ](?:with|for|towards?|that|it|this|them|the|is|was|as|at|review|sentence|sentences|pair|text|ticket|"
        rf"sentiment|tone|passage|claim|relation|relationship|word|message|email|comment|title|question|"
        rf"emotion|category|one|"
        rf"statement|similarity|"
        r"(?:a|an)(?=[ ](?:[a-z]{3,}|\d))(?![ ](?:because|since|due|over|and|for|with))|their|its|his|her|rating|"
        r"score|value|of|correct|right|best|option|choice|answer|would|be|to|has|should|these|two|item|"
        r"argument)\b){0,7}:?",
        weak=True,
    ),
    _rule(
        layers.BY_SENTENCE,
        Layer.LENIENT,
        rf"{_WORD}I(?:['’](?:d|ll)|[ ](?:would|will))?[ ](?:therefore[ ]|thus[ ])?"
        r"(?:(?:rate|score|judge|assess|classify)\b[^.\n]{0,100}?[ ](?:as|at|with)|"
        r"(?:give|award)\b[^.\n]{0,60}?[ ]an?)[ ]",
        weak=True,
        ends=True,
    ),
    _rule(
        layers.BY_CAPTION,
        Layer.LENIENT,
        r"(?:^|[.!?][ ])[*_#\t ]{0,6}(?:verdict|conclusion|classification|prediction|decision|judge?ment|label|"
        r"category)[*_]{0,2}:[*_]{0,2}[ ]",
        weak=True,
    ),
    _rule(layers.BY_TICK, Layer.LENIENT, r"✓[ *_]{0,4}(?=\S)", weak=True, ends=True),
    _rule(
        layers.BY_SENTENCE,
        Layer.LENIENT,
        rf"{_WORD}(?:[a-z]{{3,12}}est|most[ ]\w{{3,20}}|correct|right|only|exception|"
        rf"odd[ ]one[ ]out)\b[^\n.:;,!?]{{0,60}}?{BLANK}(?:is|are|was|would[ ]be|must[ ]be)\b",
        weak=True,
        ends=True,
    ),
)


CONCLUSION = re.compile(
    rf"{_WORD}(?:(?:therefore|thus|hence|(?<!think[ ])(?<!say[ ])so(?![ ](?:that|far|much|many)\b)|in[ ]conclusion|"
    r"to[ ]conclude|in[ ]summary|in[ ]short|overall|consequently|accordingly|finally|namely|"
    r"it(?:['’]s|[ ]is|[ ]has[ ]to[ ]be|[ ]must[ ]be|[ ]should[ ]be)|"
    r"that(?:['’]s|[ ]is|[ ]leaves|[ ]gives|[ ]means|[ ]makes)|this[ ](?:gives|leaves|means|makes)|leaving|"
    r"making[ ]it|equals|"
    r"(?:simplif(?:y|ies)|reduces?|rounds?|corresponds?)[ ]to|"
    r"we[ ](?:get|have|choose|select|pick|obtain|find)|which[ ](?:is|gives|means|makes)|leaves|gives(?:[ ]us)?|yields|"
    r"results?[ ]in|left[ ]with|end(?:s|ed)?[ ]up[ ]with|"
    r"(?:comes?|came|amounts?)[ ]to|(?:merits?|deserves?|warrants?)[ ]an?|"
    r"(?:insgesamt[ ])?(?:es[ ](?:sind|ist)|(?:sind|ist)[ ]es)[ ]also|insgesamt[ ]sind[ ]es|somit|"
    r"folglich|donc|portanto|quindi|por[ ]lo[ ]tanto)\b[\s,:*_]{0,6}"
    r"|(?:conclusion|verdict|classification|label|category|sentiment|rating|score|result|output|total|prediction|"
    r"judge?ment|decision|selection|choice|intent)\b[ ]?[*_]{0,2}[:=→][\s*_]{0,6})"
    r"|(?:所以|因此|总共|一共)+有?|(?:→|⇒|∴|->|=>)[ ]{0,2}|"
    rf"{_WORD}i\.e\.,?[ ]",
    FLAGS,
)
"""After these an answer concludes, if the sentence ends with it."""


@cache
def _taken(most: Layer, weak: bool) -> tuple[Rule, ...]:
    return tuple(rule for rule in RULES if rule.layer <= most and rule.weak == weak)


_SUPPOSED = re.compile(r"\b(?:would|might|could)\b")
_MOST_SAID = 2200
_MOST_WEAK = 32_768
"""Characters, at the end of a text, in which sentences are looked at."""
_MOST_PLACES = 400


def places(text: str, most: Layer, *, weak: bool) -> Iterator[Place]:
    """The places of these layers, the last one first."""
    start = max(0, len(text) - _MOST_WEAK) if weak and most > Layer.STRICT else 0
    found = [[(match, rule) for match in rule.pattern.finditer(text, start)] for rule in _taken(most, weak)]
    ordered = sorted((each for one in found for each in one), key=lambda each: (each[0].end(), each[1].layer))
    for match, rule in reversed(ordered[-_MOST_PLACES:]):
        yield _place(text, match, rule)


def _place(text: str, match: re.Match[str], rule: Rule) -> Place:
    if "said" not in match.re.groupindex:
        return Place(rule, match.start(), match.end(), match[0], text[match.end() : match.end() + _MOST_SAID], False)
    said = match["said"]
    if rule.is_json:
        said = _unquoted(said)
    return Place(rule, match.start(), match.end(), match[0], said, True)


def _unquoted(said: str) -> str:
    if said[0] == "'":
        return said[1:-1]
    try:
        value = json.loads(said, strict=False)
    except ValueError:
        return said.strip('"')
    return value if isinstance(value, str) else said


def line(text: str) -> str:
    """The first line."""
    return text.partition("\n")[0]


def lines(text: str) -> Sequence[str]:
    """Lines that are not blank."""
    return [each for each in text.split("\n") if each.strip()]
