"""Properties of a rule's expression that follow from its text alone."""

import pytest

from zygote_py.adjoints import is_singular, vanishes
from zygote_py.adjoints.rules.formulas import rule
from zygote_py.adjoints.rules.scalar import scipy_special


@pytest.mark.parametrize(
    "text", ["dy", "-dy", "0.5 * dy", "dy * -2", "dy if a > b else 0.0", "0.0 if a < b else (-dy if a == b else dy)"]
)
def test_an_expression_that_is_zero_with_dy(text):
    assert vanishes(text)


@pytest.mark.parametrize("text", ["cos(x) * dy", "dy / x", "dy if a > b else x * dy", "dy + 1", "x"])
def test_an_expression_that_may_be_nan_for_a_zero_dy(text):
    assert not vanishes(text)


@pytest.mark.parametrize(
    "text",
    [
        "dy / x",
        "log(x) * dy",
        "-(power(x, 2) * dy)",
        "digamma(x) * dy",
        "special.jv(1, x) * dy",
        "1 / y if y else 0",
        "-(y * (dy * y))",
    ],
)
def test_an_expression_that_may_be_infinite(text):
    assert is_singular(text)


@pytest.mark.parametrize(
    "text", ["dy", "cos(x) * dy", "dy if logical_and(a, b) else 0.0", "sqrt(x) * dy", "(1 - y * y) * dy", "y * dy"]
)
def test_an_expression_that_is_finite_for_finite_arguments(text):
    assert not is_singular(text)


def test_every_rule_with_a_division_a_logarithm_or_a_function_with_poles_may_be_infinite():
    rows = [row for rows in rule.ROWS.values() for row in rows]
    rows += [row for row in map(scipy_special.rule_of, scipy_special.names()) if row is not None]
    texts = {text for row in rows for text in row.adjoints if text is not None}
    signs = ("/", "**", "power", "log", "gamma", "special.", "_density", "-((y * y) * dy)")
    assert all(is_singular(text) == any(sign in text for sign in signs) for text in texts)
