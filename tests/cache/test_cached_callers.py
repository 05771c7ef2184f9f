"""`@njit(cache=True)` functions that call derivatives: another process reads them, and never what is stale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from tests.fork_server import SETTINGS, forked

CALLEES = """
    import numpy as np
    import zygote_py as zg
    from numba import njit

    SCALE = 1.0

    def helper(x):
        return x * x

    def f(x):
        return helper(x)

    def scaled(x):
        return SCALE * x * x

    def power(x, n=2):
        return x * power(x, n - 1) if n > 0 else 1.0

    def total(x):
        return np.sum(x * x)

    df = zg.gradient(f)
"""

CALLERS = """
    import numba
    import numpy as np
    import zygote_py as zg
    from numba import njit, prange
    import callees
    from callees import df, f, power, scaled, total

    @njit(cache=True)
    def by_name(x):
        return zg.gradient(f)(x)

    @njit(cache=True)
    def by_object(x):
        return df(x)

    @njit(cache=True)
    def both(x):
        return zg.value_and_gradient(f)(x)

    @njit(cache=True)
    def pulled(x):
        value, back = zg.pullback(f, x)
        return value, back(1.0)

    @njit(cache=True)
    def recursive(x):
        return zg.gradient(power, wrt=0)(x, 2)

    @njit(cache=True)
    def captured(x):
        return zg.gradient(scaled)(x)

    @njit(cache=True)
    def pulled_captured(x):
        value, back = zg.pullback(scaled, x)
        return value, back(1.0)

    @njit(cache=True)
    def outer(x):
        return by_name(x) + 1.0

    @njit(cache=True, parallel=True)
    def in_parallel(x):
        found = np.empty(4)
        for k in prange(4):
            found[k] = df(x)
        return found[3]

    @njit(cache=True)
    def of_array(x):
        return zg.gradient(total)(np.full(3, x))[0]

    @numba.vectorize(["f8(f8)"], cache=True)
    def elementwise(x):
        return df(x)

    @njit(cache=True)
    def inner(x, w):
        return zg.gradient(lambda v: v * v * w)(x)

    def run():
        import json, warnings
        found = {}
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            for name in NAMES:
                function = globals()[name]
                result = function(2.0, 1.0) if name == "inner" else function(2.0)
                hits = sum(function.stats.cache_hits.values()) if hasattr(function, "stats") else -1
                found[name] = [hits, np.ravel(np.asarray(json.loads(json.dumps(flat(result))))).tolist()]
        print(json.dumps([found, sorted({str(each.message) for each in raised if "cache" in str(each.message)})]))

    def flat(result):
        if isinstance(result, tuple):
            return [item for each in result for item in flat(each)]
        return [float(result)]
"""


@pytest.fixture
def process(tmp_path):
    """Runs the callers by name in a process of their own: their hits and results, and warnings."""

    def write(name, text):
        (tmp_path / name).write_text(textwrap.dedent(text))

    def run(*names, before="", anew=False):
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        settings = {
            **os.environ,
            "PYTHONPATH": path,
            "ZYGOTE_PY_CACHE": "0",
            "ZYGOTE_PY_VERIFY": "",  # who watches the stages gets nothing from a cache
            **SETTINGS,
            "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        }
        program = f"import callees; {before}\nimport callers; callers.NAMES = {names!r}; callers.run()"
        if anew:
            command = [sys.executable, "-c", program]
            done = subprocess.run(command, env=settings, capture_output=True, text=True, cwd=tmp_path, timeout=300)
        else:
            done = forked(program, tmp_path, settings)
        assert done.returncode == 0, done.stderr
        found, warned = json.loads(done.stdout.splitlines()[-1])
        return {name: tuple(each) for name, each in found.items()}, warned

    def edit(old, new):
        text = (tmp_path / "callees.py").read_text()
        assert old in text
        (tmp_path / "callees.py").write_text(text.replace(old, new))

    write("callees.py", CALLEES)
    write("callers.py", CALLERS)
    run.edit = edit
    return run


ALL = {
    "by_name": [4.0],
    "by_object": [4.0],
    "both": [4.0, 4.0],
    "pulled": [4.0, 4.0],
    "captured": [4.0],
    "pulled_captured": [4.0, 4.0],
    "outer": [5.0],
    "in_parallel": [4.0],
    "of_array": [4.0],
    "elementwise": [4.0],
}


def test_another_process_reads_them(process):
    found, warned = process(*ALL)
    assert {name: result for name, (_, result) in found.items()} == ALL
    assert not warned
    found, _ = process(*ALL, anew=True)
    assert {name: result for name, (_, result) in found.items()} == ALL
    assert {name: hits for name, (hits, _) in found.items()} == {
        name: -1 if name == "elementwise" else 1 for name in ALL
    }
    # What is called has changed, in a file that Numba does not look at.
    process.edit("return x * x\n\ndef f", "return x * x * x\n\ndef f")
    found, _ = process(*ALL)
    cubed = {"both": [8.0, 12.0], "pulled": [8.0, 12.0], "outer": [13.0]}
    same = ("captured", "pulled_captured", "of_array")
    expected = {name: ALL[name] if name in same else cubed.get(name, [12.0]) for name in ALL}
    assert {name: result for name, (_, result) in found.items()} == expected
    hits = {name for name, (hits, _) in found.items() if hits == 1}
    assert hits == set(same)
    found, _ = process("by_name", "pulled", "outer")
    assert all(hits == 1 for hits, _ in found.values())
    assert found["pulled"][1] == [8.0, 12.0]
    # A captured value is a constant of compiled code.
    process.edit("SCALE = 1.0", "SCALE = 2.0")
    found, _ = process("captured", "pulled_captured", "by_name")
    assert found == {"captured": (0, [8.0]), "pulled_captured": (0, [8.0, 8.0]), "by_name": (1, [12.0])}
    found, _ = process("captured")
    assert found == {"captured": (1, [8.0])}
    found, _ = process("captured", before="callees.SCALE = 3.0")  # nothing of it is in a file
    assert found == {"captured": (0, [12.0])}


def test_what_cannot_be_compared_is_not_read(process):
    """Functions that no name leads to, and recursive ones, which Numba links when they are compiled."""
    process.edit("df = zg.gradient(f)", "df = zg.gradient(lambda x: helper(x))")
    for _ in range(2):
        found, warned = process("by_object", "inner", "recursive")
        assert found == {name: (0, [4.0]) for name in ("by_object", "inner", "recursive")}
        for name in ("<lambda>", "power"):
            assert any(f"Cannot cache compiled functions that call the gradient of {name}" in each for each in warned)
    process.edit("return x * x\n\ndef f", "return x * x * x\n\ndef f")
    assert process("by_object")[0] == {"by_object": (0, [12.0])}
