"""What a reply that goes through options or labels says of each: right or wrong. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

_VERDICT = re.compile(
    r"(?:\A[\s*_:–—-]{0,6}|[.:–—|(\[→=-][\s*_(]{1,6}|[|(\[→]|, )(?:this (?:is|one is) |that is |it is |is )?"
    r"(?P<no>not |in)?(?P<said>correct|right|true|accurate|wrong|false|incorrect|inaccurate|"
    r"yes|no|✓|fits|matches|(?:this |it )(?:fits|matches)(?: best| well)?|unlikely|eliminated|excluded|ruled out|"
    r"does(?:n['’]t| not) fit|(?:highly |very )?likely)\b"
    r"(?=[\s*_]{0,4}(?:\Z|[.,;:!)\]|–—-]|because\b|since\b|as\b|option\b|answer\b|choice\b))"
    r"|(?P<tick>✓)",
    re.IGNORECASE,
)
_RIGHT = ("correct", "right", "true", "accurate", "yes", "✓")
_FITS = re.compile(r"(?<!doesn['’]t )(?<!does not )\b(?:fits|matches|likely)\b")
_LONGEST = 400


def verdict(said: str) -> bool | None:
    """Whether what is said of an item calls it right; None where it does neither."""
    match = _VERDICT.search(said[:_LONGEST])
    if match is None:
        return None
    if match["tick"] is not None:
        return True
    said = match["said"].lower()
    return (said in _RIGHT or _FITS.search(said) is not None) != bool(match["no"])


def the_right_one(verdicts: Mapping[str, bool], count: int) -> str:
    """The only item that is called right, where all `count` are judged, or none after it; else empty."""
    right = [item for item, is_right in verdicts.items() if is_right]
    if len(right) != 1 or len(verdicts) < 2:
        return ""
    return right[0] if len(verdicts) >= count or right[0] == list(verdicts)[-1] else ""
