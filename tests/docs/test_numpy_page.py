"""docs/numpy.md: it is what the generator writes, and what it says of a function is so."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.docs.pages.__main__ import HEAD, TITLES, text
from tests.docs.pages.catalogue import Entry, Kind, entries, outcome
from tests.docs.pages.samples import SAMPLES
from tests.modes import one_in
from zygote_py import DifferentiationError, gradient, value_and_gradient

pytestmark = pytest.mark.interpreted

PAGE = (Path(__file__).parents[2] / "docs" / "numpy.md").read_text("utf-8")
ENTRIES = [(TITLES[module], entry) for module, found in entries() for entry in found]
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def kind_of(title: str, entry: Entry) -> Kind:
    """Where the page has an entry."""
    parts = {kind: part for kind in Kind for part in SECTIONS[title].split("\n\n") if kind.value.capitalize() in part}
    (kind,) = (kind for kind, part in parts.items() if f"`{entry.names[0]}`" in part)
    return kind


@pytest.mark.long
def test_the_page_is_up_to_date():
    assert text() == PAGE, "run python -m tests.docs.pages docs"


def test_every_callable_is_on_the_page_once_and_nothing_else():
    assert PAGE.startswith(HEAD)
    for title, section in SECTIONS.items():
        names = [name for own, entry in ENTRIES if own == title for name in entry.names]
        assert len(names) > 15 or title == "numpy.linalg"
        shown = re.sub(r" \([^()]*(?:\([^()]*\)[^()]*)*\)", "", section)
        assert sorted(re.findall(r"`(.*?)`", shown)) == sorted(names)


@pytest.mark.parametrize(("title", "entry"), one_in(10, ENTRIES), ids=lambda each: getattr(each, "names", [each])[0])
def test_what_the_page_says_of_a_callable_is_so(title, entry):
    assert outcome(entry.call) is kind_of(title, entry)


@pytest.mark.parametrize("name", ["np.sort", "np.ndenumerate", "map", "filter", "sum", ".view", "np.zeros"])
def test_differentiable(name):
    assert outcome(SAMPLES[name]) is Kind.DIFFERENTIABLE


@pytest.mark.parametrize("name", ["np.argsort", "np.random.normal", "np.eye", "math.gcd", "len", ".argmax"])
def test_without_derivative(name):
    assert outcome(SAMPLES[name]) is Kind.FLAT


@pytest.mark.parametrize("name", ["np.nextafter", "np.roots", "np.frombuffer", "np.nditer", ".tobytes"])
def test_refused(name):
    assert outcome(SAMPLES[name]) is Kind.REFUSED


FLAT_CALLS = [
    "np.argsort(x)[0]",
    "np.floor(x)[0]",
    "np.searchsorted(x, 0.5)",
    "np.any(x > 0.4)",
    "np.nonzero(x)[0][1]",
    "np.linalg.matrix_rank(np.outer(x, x))",
    "np.count_nonzero(x)",
    "np.eye(3)[1, 1]",
    "np.hamming(3)[1]",
    "np.isclose(x, 0.3)[0]",
]


def function(call):
    namespace = {"np": np}
    exec(f"def f(x):\n    return x[0] * x[0] + {call}\n", namespace)
    return namespace["f"]


@pytest.mark.parametrize("call", FLAT_CALLS)
def test_no_gradient_flows_through_what_has_no_derivative(call):
    x = np.array([0.3, 0.5, 0.9])
    value, dx = value_and_gradient(function(call))(x)
    np.testing.assert_allclose(dx, [0.6, 0.0, 0.0])
    assert value == pytest.approx(function(call)(x))


@pytest.mark.parametrize(
    "call", ["np.roots(x)[0].real", "np.nextafter(x[0], 1.0)", "np.spacing(x[0])", "np.kaiser(3, x[0])[0]"]
)
def test_what_is_refused_is_refused_with_its_line(call):
    with pytest.raises(DifferentiationError) as caught:
        gradient(function(call))(np.array([0.3, 0.5, 0.9]))
    assert call.partition("(")[0] in str(caught.value)
