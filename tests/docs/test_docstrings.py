"""The examples in the docstrings of the public names run and print what they show."""

from __future__ import annotations

import doctest

import pytest

import zygote_py

EXAMPLES = [
    test
    for name in zygote_py.__all__
    for test in doctest.DocTestFinder(exclude_empty=True).find(getattr(zygote_py, name), name)
    if test.examples
]
WITHOUT = {"ScipyEquations", "ScipyObjective", "ScipyOde", "ScipyResiduals"}  # results of functions that have one


def test_every_public_name_has_an_example():
    with_examples = {test.name.partition(".")[0] for test in EXAMPLES}
    assert set(zygote_py.__all__) - with_examples == WITHOUT


@pytest.mark.parametrize("test", EXAMPLES, ids=lambda test: test.name)
def test_the_examples_run(test):
    outputs: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=outputs.append)
    assert not outputs, "".join(outputs)
