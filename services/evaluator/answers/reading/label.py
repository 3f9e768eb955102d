"""One of a task's labels. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.kinds import STRIPPED, goes_on, main_clause, negated, without_contrast
from services.evaluator.answers.reading.layers import Found
from services.evaluator.answers.reading.places import DECORATION, FLAGS, line

_WORDS = re.compile(r"[\s_-]+|(?<=[A-Za-z])(?=\d)")
_LEAD = (
    r"(?:(?:the|a|an|clear|definite|resounding|firm|simple|"
    r"clearly|definitely|most[ ]likely|likely|probably|therefore|label|labelled|labeled|class|"
    r"category)[\s*_`\"'“‘:]{1,4}){0,2}"
)
_EXPLAINS = re.compile(
    r"[.;:(\n–—]|\bbecause\b|\bsince\b|\bas\b|\brather\b|\bnot\b|\binstead\b|\bthan\b|\bwhich\b|\bwhile\b|"
    r"\balthough\b|\bthough\b|\bdespite\b|,",
    re.IGNORECASE,
)
_JOINED = re.compile(r"[\s)\]>*_`\"'”’.]{0,6}(?:[/,;&+|]|\bor\b|\band\b|\bto\b|\bbut\b)", FLAGS)
_SENTENCE_NO = re.compile(
    r"\b(?:not|nothing|never|neither|nor|wrong|incorrect|except|unlike|rather|instead|cannot|without|or|might|could|"
    r"unsure|hard|"
    r"uncertain|perhaps|maybe|possibly|if|whether|either|both|depends|mixed|almost|nearly|hardly|"
    r"barely)\b|n['’]t\b|\?|=\s*$",
    re.IGNORECASE,
)
_FIRST_ENDS = re.compile(
    r"[*_`\"'”’)\]]{0,4}(?:[.!:;]|,|[ ]?[–—-]|\s*\n|\s*$|[ ]\(|[ ](?:because|since|as|this|these|the|it|he|she|"
    r"they|in)\b)",
    re.IGNORECASE,
)
_NO_OTHERWISE = re.compile(
    r"[ \t]+(?!because|since|as\b|this|these|the\b|it\b|he\b|she\b|they|that|there|we\b|I\b|in\b|not\b|for\b|is\b|"
    r"[(–—-])\w",
    re.IGNORECASE,
)
"""After "no": "no idea", "no clear answer" are none."""
_OPPOSITES = {"true": "yes", "false": "no", "yes": "true", "no": "false"}
_ALSO = {"yeah": "yes", "yep": "yes", "yup": "yes", "nope": "no", "nah": "no"}
_SAID = re.compile(r"(yeah|yep|yup|nope|nah)\b(?=[.,!:;\n]|$)", re.IGNORECASE)
_VERBS = {"contradiction": r"contradict(?:s|ed|ory)?", "entailment": r"entail(?:s|ed)?"}
"""What else a sentence says in place of a label."""
_NOT_SO = {"entailment": ("entailed",)}
"""What "not" precedes in place of a label."""
_QUOTED = re.compile(r"(?<!\w)(?:'[^'\n]{1,80}'|\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”|‘[^’\n]{1,80}’)(?!\w)")
_IT_IS = re.compile(
    r"\A(?:That|It|(?:This|The)(?: (?:comment|tweet|message|text|email|post|passage|step|plan|"
    r"statement|claim|sentence|review|argument|hypothesis|sentiment|answer))?)"
    r"(?:['’]s| is) (?:(?:clearly|definitely) )?"
)
_VERDICT = re.compile(
    r"(?:That|It|(?:This|The) (?:statement|claim|sentence|assertion))(?:['’]s| is|(?P<isnt> isn['’]t)) "
    r"(?P<no>not (?:true|correct|right)|untrue|incorrect|wrong|(?(isnt)(?:true|correct|right)|(?!)))\b(?=[.,;!\n]|$)"
)
_LISTED = re.compile(r"[*_`]{0,3}(?::|[ ][–—-])")
_YES_OR_NO = re.compile(r"[*_`]{0,3}:[ *_`]{1,4}(?P<said>yes|no|true|false|✓)(?![A-Za-z])", re.IGNORECASE)
_SURELY = re.compile(r"(?:probably|likely|most likely|definitely|certainly|clearly|obviously),? (?=\w)", re.IGNORECASE)
_DENIED = re.compile(
    r"(?:\b(?:not|no|never|neither|nor|nothing|without|than)|n['’]t)\b(?:\W+\w+){0,2}\W*\0|"
    r"\0\W+(?:\w+ not\b|not\b|\w+n['’]t\b|cannot\b|lacks\b)",
    re.IGNORECASE,
)
"""A label, masked, that is denied."""
_LED_IN = re.compile(
    r"(?:actually|well|hmm|in fact|in short|honestly|to be honest|strictly speaking|technically|"
    r"ok(?:ay)?|sure)[,:] (?=\w)",
    re.IGNORECASE,
)
_ADJUNCT = re.compile(r"\W{0,4}(?:in|unlike|compared (?:to|with)|translated (?:in)?to)[ ]", re.IGNORECASE)
_CHOOSES = re.compile(r"\b(?:better|best|correct|right|answer|stronger|prefer\w*|most|more)\b", re.IGNORECASE)
_MOST_LINES = 20
_WHILE = re.compile(r",? whereas\b|, while\b", re.IGNORECASE)
_DOUBTS = re.compile(
    r"\b(?:unsure|sure|might|hard|uncertain|perhaps|maybe|possibly|if|whether|either|both|depends|mixed|wrong|incorrect|"
    r"not (?:really|quite|exactly|certain|clear))\b|\?",
    re.IGNORECASE,
)
_PREDICATE = re.compile(
    r"(?:\b(?:is|are|was|were|be)|['’]s)[ ]"
    r"(?:(?:clearly|most likely|likely|probably|in|an?|the|considered|called)[ ]){0,3}[*_\"“]{0,3}"
)
_HYPHENS = re.compile(r"\b[a-z]{2,12}-[a-z]{2,12}\b", re.IGNORECASE)
_OF_IT = re.compile(r"['’]s\b")
_SHORT = 400


class LabelKind:
    """One of `labels`. Another label is looked for in so much of the answer's line, None being all: with hundreds of
    long ones that takes long."""

    def __init__(self, labels: Sequence[str], looked_at: int | None = None) -> None:
        self._looked_at = looked_at
        self._labels = {plain_label(label): label for label in labels}
        # Longest first: "not_entailment" before "entailment". A separator in a label may be written as any or none, an
        # underscore as Markdown escapes it; a number at its end may stand apart: "choice 1".
        ordered = sorted(labels, key=len, reverse=True)
        names = "|".join(r"(?:[\s-]|\\?_)?".join(map(re.escape, _WORDS.split(name))) for name in ordered)
        # "Not acceptable" is another way to write "unacceptable".
        for label in labels:
            for denied in labels:
                if plain_label(denied) in {f"{no}{plain_label(label)}" for no in ("un", "in", "non")}:
                    self._labels[f"not{plain_label(label)}"] = denied
                    names = rf"not[\s-]{re.escape(label)}|{names}"
                for said in _NOT_SO.get(plain_label(label), (f"{plain_label(label)}s",)):
                    # "Not duplicates" for "not_duplicate", "not entailed" for "not_entailment".
                    if plain_label(denied) == f"not{plain_label(label)}" and f"not{said}" not in self._labels:
                        self._labels[f"not{said}"] = denied
                        names = rf"not[\s_-]{re.escape(said)}|{names}"
        self._label = re.compile(rf"(?<![A-Za-z0-9])(?:{names})(?!_?[A-Za-z0-9])", FLAGS)
        verbs = [re.escape(label) for label in ordered if re.fullmatch(r"(?:not )?[a-z]{5,}", label)]
        self._inflected = re.compile(rf"\b(?P<label>{'|'.join(verbs)})(?:e?s|e?d)\b", FLAGS) if verbs else None
        self._at = re.compile(rf"{DECORATION}(?P<answer>{self._label.pattern})", FLAGS)
        self._led = re.compile(rf"{DECORATION}{_LEAD}{DECORATION}(?P<answer>{self._label.pattern})", FLAGS)

    def at(self, said: str, *, closed: bool, ends: bool) -> Found | None:
        match = self._at.match(said) or self._led.match(said)
        if match is None:
            boolean = self._boolean(said) if closed else ""
            return Found(boolean, len(said)) if boolean else None
        label = self._labels[plain_label(match["answer"])]
        after = said[match.end() :]
        rest = line(after)[: self._looked_at]
        if plain_label(label) == "no" and not closed and _NO_OTHERWISE.match(rest):
            return None
        if ends and not _FIRST_ENDS.match(rest):
            return None
        if negated(rest):
            return Found("", match.end(), layers.NEGATED)
        if self._names_another(label, rest):
            return Found("", match.end(), layers.AMBIGUOUS)
        return Found(label, match.end())

    def whole(self, text: str) -> Found | None:
        plain = plain_label(text)
        label = self._labels.get(plain) or self._labels.get(_ALSO.get(plain, "")) or self._boolean(plain) or None
        if label is None and len(begun := [each for name, each in self._labels.items() if name[:1] == plain[:1]]) == 1:
            # "F" for false, or a label said again: "yes yes".
            label = begun[0] if len(plain) == 1 or set(text.lower().split()) == {begun[0].lower()} else None
        return Found(label, len(text)) if label else None

    def first(self, text: str) -> Found | None:
        if (verdict := _VERDICT.match(text.lstrip())) is not None:
            label = self._labels.get("false" if verdict["no"] else "true")
            return Found(label, verdict.end()) if label and {"true", "false"} <= self._labels.keys() else None
        text = _LED_IN.sub("", _SURELY.sub("", text.lstrip(), count=1), count=1)
        said = _IT_IS.sub("", text.lstrip(" \t\r\n#"), count=1)
        if (also := _SAID.match(said)) is not None and _ALSO[also[1].lower()] in self._labels:
            return Found(self._labels[_ALSO[also[1].lower()]], also.end())
        match = self._at.match(said)
        if match is None:
            return None
        label = self._labels[plain_label(match["answer"])]
        rest = said[match.end() :]
        if not _FIRST_ENDS.match(rest) or (plain_label(label) == "no" and _NO_OTHERWISE.match(rest)):
            return None
        if negated(rest) or self._names_another(label, line(rest)[: self._looked_at]):
            return None
        return Found(label, match.end()) if not self._begins_another(label, rest) else None

    def _begins_another(self, label: str, rest: str) -> bool:
        """Whether one of the next lines begins with another label, as in "Yes, since …" and "No, since …"."""
        begun = ((each, self._at.match(each)) for each in rest.split("\n")[1:_MOST_LINES])
        return any(
            match is not None
            and self._labels[plain_label(match["answer"])] != label
            and each[match.end() :].lstrip("*").startswith((",", " –", " because", " since"))
            for each, match in begun
        )

    def claimed(self, sentences: Sequence[str]) -> Found | None:
        # "French doesn't have that" says nothing for any label.
        named = [set() if self._denied(each) else self._said_of(each) for each in sentences]
        first = next((number for number, labels in enumerate(named) if labels), -1)
        if first < 0 or (found := self.only(sentences[first])) is None:
            return None
        if any(named[first + 1 :]):
            # "The second is better. The first one is short."
            choosing = [_CHOOSES.search(each) or self.states(each) for each in sentences if self.named(each)]
            again = any(found.answer in labels for labels in named[first + 1 :])
            return found if choosing[0] and sum(map(bool, choosing)) == 1 and not again else None
        denied = [each for each in sentences[first + 1 :] if self.named(each) - {found.answer}]
        others = [each for each in sentences[first + 1 :] if each not in denied]
        if any(_DOUBTS.search(bare := _QUOTED.sub(" ", each)) or goes_on(bare) for each in others):
            return None
        return found if not any(found.answer in self.named(each) for each in denied) else None

    def _said_of(self, sentence: str) -> set[str]:
        """The labels that a sentence names, without one that it only begins with: "In English it means"."""
        sentence = without_contrast(sentence)
        begun = _ADJUNCT.match(sentence)
        bare = sentence[begun.end() :] if begun is not None else sentence
        at = self._label.match(bare) if begun is not None else None
        return self.named(bare[at.end() :] if at is not None else sentence)

    def _denied(self, sentence: str) -> bool:
        """Whether a sentence says of a label that it does not apply."""
        marked = self._label.sub("\0", sentence)
        return "\0" in marked and _DENIED.search(marked) is not None

    def states(self, clause: str) -> bool:
        """Whether a clause says that something is of a label: "91 is a composite number"."""
        said = _PREDICATE.search(clause)
        return said is not None and self._label.match(clause, said.end()) is not None

    def named(self, text: str) -> set[str]:
        """The labels that a text holds."""
        text = _HYPHENS.sub(self._joined, text)
        matches = (each for each in self._label.finditer(text) if not _OF_IT.match(text, each.end()))
        found = {self._labels[plain_label(each[0])] for each in matches}
        if self._inflected is not None:
            found |= {self._labels[plain_label(match["label"])] for match in self._inflected.finditer(text)}
        return found

    def _joined(self, word: re.Match[str]) -> str:
        """ "Front-end" as "frontend", where that is a label."""
        joined = word[0].replace("-", "")
        return joined if joined.lower() in self._labels else word[0]

    def only(self, sentence: str) -> Found | None:
        if len(sentence) > _SHORT:
            return None
        left, *right = _WHILE.split(sentence, maxsplit=1)
        if right and self.named(left) and self.named(right[0]) - self.named(left):
            # "The first half is formal, whereas the second is informal."
            return None
        sentence = main_clause(sentence, self.named)
        found = self.named(sentence)
        for label, verb in _VERBS.items():
            if label in self._labels and re.search(rf"\b{verb}\b", sentence, re.IGNORECASE):
                found.add(self._labels[label])
        others = self._label.sub(" ", self._inflected.sub(" ", sentence) if self._inflected is not None else sentence)
        others = _QUOTED.sub(" ", others)
        if len(found) != 1 or _SENTENCE_NO.search(others) or re.search(r"\bno\b", others, re.IGNORECASE):
            return None
        (label,) = found
        # "Yes" and "no" are words of any sentence.
        return None if plain_label(label) in ("yes", "no") else Found(label, len(sentence))

    def judged(self, text: str) -> Found | None:
        """The only label that a list says yes to: "- fear: yes"."""
        if {"yes", "no"} & self._labels.keys():
            return None
        verdicts = {}
        for each in text.split("\n"):
            match = self._label.match(bare := each.lstrip(" \t>*_#-"))
            if match is not None and (said := _YES_OR_NO.match(bare, match.end())) is not None:
                verdicts[self._labels[plain_label(match[0])]] = said["said"].lower() in ("yes", "true", "✓")
        if not verdicts:
            return self._in_table(text)
        right = [label for label, is_right in verdicts.items() if is_right]
        return Found(right[0], len(text)) if len(right) == 1 < len(verdicts) else None

    def _in_table(self, text: str) -> Found | None:
        """The only label that is all of a last cell: "| Severity | minor |"."""
        rows = [each.strip(" |").rpartition("|")[2] for each in text.split("\n") if each.lstrip().startswith("|")]
        found = {label.answer for cell in rows if (label := self.whole(cell)) is not None}
        return Found(found.pop(), len(text)) if len(found) == 1 and len(rows) > 2 else None

    def ends_list(self, text: str, last: str) -> bool:
        """Whether the last line is one of several that go through the labels."""
        begun = [self._listed(each) for each in text.split("\n")]
        return bool(self._listed(last)) and len(set(begun) - {""}) > 1

    def _listed(self, line: str) -> str:
        match = self._label.match(line.lstrip(" \t>*_#-"))
        return (
            plain_label(match[0]) if match is not None and _LISTED.match(line.lstrip(" \t>*_#-"), match.end()) else ""
        )

    def _names_another(self, label: str, rest: str) -> bool:
        for other in self._label.finditer(rest):
            if self._labels[plain_label(other[0])] == label:
                continue
            between = rest[: other.start()]
            if _JOINED.match(rest) and not _EXPLAINS.search(between.lstrip(" ,;")):
                return True
            if not _EXPLAINS.search(between):
                return True
        return False

    def _boolean(self, said: str) -> str:
        """A Boolean of JSON for labels "yes" and "no", and the other way."""
        return self._labels.get(_OPPOSITES.get(said.strip().lower(), ""), "")


def plain_label(text: str) -> str:
    """Lower case, without decoration and separators; empty for a text too long to be a label."""
    bare = text.strip(STRIPPED)
    return re.sub(r"[\s_\\-]", "", bare).lower() if len(bare) <= 80 else ""
