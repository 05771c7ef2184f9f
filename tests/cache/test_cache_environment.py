"""The dependencies of all cached gradients: settings, zygote-py's own files, extensions of Numba by others."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time

import numba
import pytest

from zygote_py import numba_adapter
from zygote_py.cache import environment
from zygote_py.cache.environment import versions
from zygote_py.cache.inspection import NotCacheable


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """Ignore the extensions of Numba by other tests, and the observers of the stages."""
    monkeypatch.setattr(numba_adapter, "is_extended", lambda: False)
    monkeypatch.delenv("ZYGOTE_PY_VERIFY", raising=False)


def test_the_environment(monkeypatch):
    before = versions()
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert versions() != before
    monkeypatch.setenv("ZYGOTE_PY_DUMP", "all")
    with pytest.raises(NotCacheable):
        versions()


@pytest.mark.parametrize("name", ["OPT", "CPU_NAME", "CPU_FEATURES", "LOOP_VECTORIZE", "DISABLE_INTEL_SVML"])
def test_settings_of_numba(monkeypatch, name):
    before = versions()
    monkeypatch.setattr(numba.config, name, "another")
    assert versions() != before


def test_the_size_of_the_stack(monkeypatch):
    resource = pytest.importorskip("resource")
    before = versions()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1 << 20, -1))  # of it, recursion is limited
    assert versions() != before


def _switch_on(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules["zygote_py.cache.folder"], "_switched_on", True)
    monkeypatch.setenv("ZYGOTE_PY_CACHE", "1")
    monkeypatch.setenv("ZYGOTE_PY_CACHE_DIR", str(tmp_path / "cache"))


def test_our_own_files(monkeypatch, tmp_path):
    _switch_on(monkeypatch, tmp_path)
    environment.check_unchanged()
    before = environment.source_digest()
    path = tmp_path / "of a package" / "rules" / "more.py"
    path.parent.mkdir(parents=True)
    path.write_text("")
    monkeypatch.setattr(environment, "_BEGAN", time.time() + 60.0)
    monkeypatch.setattr(sys.modules["zygote_py.adjoints"], "__path__", [str(path.parent.parent)])
    other = environment.source_digest()
    path.write_text("1")
    third = environment.source_digest()
    path.write_text("2")  # as long as it was
    assert len({before, other, third, environment.source_digest()}) == 4
    path.write_text("1")
    assert environment.source_digest() == third
    monkeypatch.setattr(environment, "_BEGAN", time.time() - 60.0)  # as if it had been changed since
    os.utime(path, (0.0, 0.0))  # as installers do
    with pytest.raises(NotCacheable):
        environment.check_unchanged()


def test_digests_of_our_own_files_are_kept(monkeypatch, tmp_path):
    """Files that are as they were are not read again."""
    _switch_on(monkeypatch, tmp_path)
    path = tmp_path / "of a package" / "more.py"
    path.parent.mkdir()
    path.write_text("1")
    monkeypatch.setattr(environment, "_BEGAN", time.time() + 60.0)
    monkeypatch.setattr(sys.modules["zygote_py.adjoints"], "__path__", [str(path.parent)])
    found = environment.source_digest()
    (kept,) = (tmp_path / "cache").glob("*.sources")
    kept.unlink()
    assert environment.source_digest() == found
    folder = environment.folder_in_use()
    folder.write(kept.name, b"as it is kept")
    assert environment.source_digest() == "as it is kept"
    os.utime(path, ns=(1, 1))
    assert environment.source_digest() == found
    monkeypatch.setenv("ZYGOTE_PY_CACHE", "0")
    assert environment.source_digest() == found


def test_extensions():
    """Extensions of Numba or zygote-py by others keep all gradients of a process out of the cache."""
    program = """
        import numpy as np
        from numba import types
        from numba.extending import *
        from zygote_py import gradient
        from zygote_py.cache.environment import versions
        from zygote_py.cache.inspection import NotCacheable
        versions()
        def scale(x):
            return x
        {text}
        try:
            versions()
        except NotCacheable as reason:
            print(reason)
    """
    texts = {
        "overload": "overload(scale)(lambda x: lambda x: x)",
        "intrinsic": "intrinsic(lambda context, x: None)",
        "lower_builtin": "lower_builtin(scale, types.float64)(lambda *args: None)",
        "type_callable": "type_callable(scale)(lambda context: lambda x: x)",
        "implements": "import zygote_py.numpy_functions.support.overloads as o; o.implements(scale)(lambda x: None)",
    }
    for name, text in texts.items():
        source = textwrap.dedent(program).replace("{text}", text)
        command = [sys.executable, "-c", source]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "ZYGOTE_PY_CACHE": "0"})
        assert done.stdout == f"an extension of {'the library' if name == 'implements' else 'Numba'}\n", done.stderr
