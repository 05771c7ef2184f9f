"""The rows on arrays of docs/kinks.md: each is read, and its gradient computed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import zygote_py as zg
from tests.modes import one_in

pytestmark = pytest.mark.interpreted

TEXT = (Path(__file__).parents[2] / "docs" / "kinks.md").read_text("utf-8").partition("## Functions of arrays")[2]
ROWS = re.findall(r"^\| `([^`]+)` \| `x = (\[.*?\])` \| `dx = (\[.*?\])` \|", TEXT, re.MULTILINE)


def numbers(text):
    return np.array(eval(text, {"nan": np.nan, "inf": np.inf}), np.float64)


def test_the_rows_are_read():
    assert len(ROWS) == TEXT.count("\n| `") > 10


@pytest.mark.parametrize(
    ("operation", "at", "expected"),
    one_in(6, ROWS, "compiled"),
    ids=[f"{row[0]} at {row[1]}" for row in ROWS],
)
def test_row(operation, at, expected):
    function = eval(f"lambda x: {operation}", {"np": np})
    np.testing.assert_array_equal(zg.gradient(function)(numbers(at)), numbers(expected))
