"""Units in which a quantity may be stated again. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple


class Unit(NamedTuple):
    """What a number measures, and how much of the first unit of that dimension one of it is."""

    dimension: str
    factor: Fraction


_SCALES: Mapping[str, Mapping[str, str]] = {
    "time": {"s sec second": "1", "min minute": "60", "h hr hour": "3600", "day": "86400", "week": "604800"},
    "length": {
        "mm": "0.001",
        "cm centimeter centimetre": "0.01",
        "m meter metre": "1",
        "km kilometer kilometre": "1000",
    }
    | {"in inch inches": "0.0254", "ft foot feet": "0.3048", "yd yard": "0.9144", "mi mile": "1609.344"},
    "mass": {"mg": "0.001", "g gram": "1", "kg kilogram kilo": "1000", "t ton tonne": "1000000"}
    | {"oz ounce": "28.35", "lb pound": "453.6"},
    "volume": {"ml milliliter millilitre": "0.001", "cl": "0.01", "dl": "0.1", "l liter litre": "1"}
    | {"gallon": "3.785", "pint": "0.473", "quart": "0.946", "m³ m^3": "1000", "cm³ cm^3": "0.001"},
    "speed": {"km/h kph": "1", "m/s": "3.6", "mph": "1.609"},
    "share": {"% percent": "0.01"},
    "money": {"cent": "0.01", "dollar": "1"},
}
_UNITS = {
    unit: (dimension, Fraction(factor))
    for dimension, scale in _SCALES.items()
    for units, factor in scale.items()
    for unit in units.split(" ")
}
_UNIT = re.compile(
    r"[ ](?:out[ ])?of[ ](?:the[ ]|every[ ])?(?P<whole>\d{1,9})\b|"
    r"[ \u00a0*_-]{0,3}(?P<unit>%|km/h|m/s|c?m(?:³|\^3)|°[ ]?[CF]\b|¢|[A-Za-z]{1,12})"
)


_FAHRENHEIT = Fraction(5, 9)


def unit_named(name: str) -> Unit | None:
    """The unit with this name in lower case, in the singular or plural; None where there is none."""
    if name in ("°c", "celsius", "degree celsius", "degrees celsius"):
        return Unit("temperature", Fraction(1))
    if name in ("°f", "fahrenheit", "degree fahrenheit", "degrees fahrenheit"):
        return Unit("temperature", _FAHRENHEIT)
    name = {"percentage": "percent", "¢": "cent"}.get(name, name)
    found = _UNITS.get(name) or _UNITS.get(name.removesuffix("s"))
    return Unit(*found) if found is not None else None


def unit_of(number: str, after: str) -> Unit | None:
    """The unit of a number as it is written, with the text that follows it; None where it has none."""
    if "$" in number:
        return Unit("money", Fraction(1))
    match = _UNIT.match(after)
    return unit_named(match["unit"].lower().replace(" ", "")) if match is not None and match["unit"] else None


def same_quantity(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two numbers, each with the text that follows it, state one quantity in different units. Percent of
    a fraction are the result of a calculation, and no other unit."""
    unit, value, stated = _measured(*one)
    other_unit, again, restated = _measured(*other)
    if unit != other_unit or stated == restated or (unit == "share" and restated != "of"):
        return False
    return abs(value - again) <= abs(value) * Fraction(3, 100)


def _measured(number: str, after: str) -> tuple[str, Fraction, str]:
    """The dimension of a number, its value in the first unit of that, and its own unit."""
    value = Fraction(number)
    match = _UNIT.match(after)
    if match is None:
        return "share", value, ""
    if match["whole"]:
        return "share", value / max(1, int(match["whole"])), "of"
    unit = match["unit"].lower().replace(" ", "")
    if unit in ("°c", "°f"):
        return "temperature", value if unit == "°c" else (value - 32) * Fraction(5, 9), unit
    unit = unit if unit in _UNITS else unit.removesuffix("s")
    dimension, factor = _UNITS.get(unit, ("share", Fraction(1)))
    return dimension, value * factor, unit if dimension != "share" or unit in ("%", "percent") else ""
