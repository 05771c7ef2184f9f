"""Properties of a rule's expression that follow from its text alone."""

import pytest

from zygote_py.adjoints.rules.terms import vanishes


@pytest.mark.parametrize(
    "text", ["dy", "-dy", "0.5 * dy", "dy * -2", "dy if a > b else 0.0", "0.0 if a < b else (-dy if a == b else dy)"]
)
def test_an_expression_that_is_zero_with_dy(text):
    assert vanishes(text)


@pytest.mark.parametrize("text", ["cos(x) * dy", "dy / x", "dy if a > b else x * dy", "dy + 1", "x"])
def test_an_expression_that_may_be_nan_for_a_zero_dy(text):
    assert not vanishes(text)
