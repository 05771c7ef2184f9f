"""The faults of `tests.seeded_faults`: each still applies to the code, and its tests are there."""

from pathlib import Path

import pytest

from tests.seeded_faults.faults import FAULTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_it_applies(fault):
    text = (ROOT / fault.path).read_text(encoding="utf-8")
    assert text.count(fault.old) == 1
    compile(text.replace(fault.old, fault.new), fault.path, "exec")
    assert fault.tests
    assert all((ROOT / path).is_file() for path in fault.tests)


def test_each_is_described_once():
    assert len({fault.what for fault in FAULTS}) == len(FAULTS)
