"""Numba is as the adapter takes it to be: what broke, where a new version of Numba comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.numba_facts import FACTS, page
from zygote_py.numba_adapter.base import internals

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize("name", sorted({*internals.__all__, *internals._LATER}))
def test_what_is_imported_is_there(name):
    assert getattr(internals, name) is not None


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_what_is_taken_for_granted_holds(fact):
    assert fact.holds(), f"{fact.name}: {fact.purpose}"


def test_the_page_is_current():
    assert Path("docs/numba.md").read_text("utf-8") == page()
