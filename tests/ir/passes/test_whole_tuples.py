"""A tuple whose items fill an array is copied as a whole."""

from __future__ import annotations

import pytest

from tests.ir.transform import read, shown
from zygote_py.ir.passes import store_whole_tuples


def stored(*lines: str, type: str = "(f64, f64)") -> str:
    items = ["%v0 = getitem %t, 0 : f64", "%v1 = getitem %t, 1 : f64"]
    text = "\n  ".join(["b0:", *items, *lines, "%r = getitem %a, 0 : f64", "return %r"])
    function = read(text, f"function f(%t: {type}, %x: f64) -> f64")
    store_whole_tuples(function)
    return shown(function)


RECORD, FIRST, SECOND = "%a = record 2 : f64[:]", "initialize %a, %v0, 0", "initialize %a, %v1, 1"


def test_all_items_in_order():
    text = stored(RECORD, FIRST, SECOND)
    assert "array %t : f64[:]" in text
    assert "initialize" not in text


def test_others_may_stand_between():
    text = stored(RECORD, "%b = zeros 3 : f64[:]", FIRST, "setitem %b, %x, 0", SECOND)
    assert "array %t : f64[:]" in text
    assert "initialize" not in text
    assert "setitem %b, %x, 0" in text


@pytest.mark.parametrize(
    "lines",
    [
        [RECORD, FIRST],
        [RECORD, "initialize %a, %v1, 0", "initialize %a, %v0, 1"],
        [RECORD, "initialize %a, %v0, 1", "initialize %a, %v1, 0"],
        [RECORD, FIRST, "initialize %a, %x, 1"],
        [RECORD, FIRST, "%s = getitem %a, 0 : f64", SECOND],
        ["%a = record 3 : f64[:]", FIRST, SECOND, "initialize %a, %x, 2"],
    ],
    ids=["a part", "swapped", "backwards", "another", "read before", "longer"],
)
def test_what_is_left(lines):
    text = stored(*lines)
    assert "array %t" not in text
    assert text.count("initialize") == sum("initialize" in line for line in lines)


def test_a_longer_tuple_is_left():
    assert "array %t" not in stored(RECORD, FIRST, SECOND, type="(f64, f64, f64)")
