"""Suites over a mirror with rows of GLUE."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.evaluator.catalogue import Catalogue
from tests.unit.evaluator import glue_rows


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return Catalogue(glue_rows.write(tmp_path))
