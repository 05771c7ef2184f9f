"""A first derivative imports as little of SciPy as it needs, and who imports SciPy afterwards finds all of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.compiled

PROGRAM = """
import sys
import numpy as np
import zygote_py as zg

def f(a):
    return np.linalg.inv(a)[0, 1]

a = np.array([[2.0, 0.5], [0.25, 1.0]])
found = zg.gradient(f)(a)
assert np.isfinite(found).all()
print("scipy.linalg" in sys.modules, "scipy.sparse" in sys.modules)
BEFORE = sys.modules.get("scipy.linalg.cython_blas")
IMPORT
import scipy.linalg
assert scipy.linalg.cython_blas.__pyx_capi__ and scipy.linalg.cython_lapack.__pyx_capi__
assert BEFORE in (None, scipy.linalg.cython_blas)
import scipy.linalg.blas, scipy.optimize, scipy.sparse.linalg
assert np.allclose(scipy.linalg.inv(a) @ a, np.eye(2))
assert np.array_equal(zg.gradient(f)(a), found)
print(repr(found.tolist()))
"""


def run(program, folder):
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "ZYGOTE_PY_CACHE": "", "ZYGOTE_PY_CACHE_DIR": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


FIRST = PROGRAM.replace("IMPORT", "import scipy.linalg.cython_lapack")


def test_the_package_is_imported_by_others_alone_and_before(tmp_path):
    first = run(FIRST, tmp_path)
    assert first[0] == "False False"
    before = run("import scipy.linalg\n" + PROGRAM.replace("IMPORT", ""), tmp_path)
    assert before[0].startswith("True")
    assert first[1] == before[1]


@pytest.mark.long
def test_another_module_is_imported_by_others(tmp_path):
    first = run(FIRST, tmp_path)
    again = run(PROGRAM.replace("IMPORT", "from scipy.linalg import cython_blas"), tmp_path)
    assert first == again
    assert again[0] == "False False"
