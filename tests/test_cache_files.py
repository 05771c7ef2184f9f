"""The files of the cache: damaged, missing, too many, written by several at once, in folders that cannot be used."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from zygote_py import cli, compile, gradient
from zygote_py.cache import Folder, environment, folder, folder_named, records
from zygote_py.numba_adapter import stored

FACTOR = 3


def scaled(x):
    return FACTOR * x * x


class Here:
    """Makes gradients of `scaled` in this process as if each time it were a new one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.compilations = 0

    def run(self) -> tuple[bool, bool]:
        """Whether stages ran, and whether machine code was read."""
        before = self.compilations
        stored._held.clear()
        df = gradient(scaled)
        assert df(2.0) == 4.0 * FACTOR
        return self.compilations > before, bool(sum(df._now.dispatcher._cache_hits.values()))

    def files(self, suffix: str) -> list[Path]:
        return sorted(self.path.glob(f"*{suffix}"))


COMPILED, READ = (True, False), (False, True)


@pytest.fixture
def here(tmp_path, monkeypatch):
    found = Here(tmp_path / "cache")
    monkeypatch.setattr(folder, "_switched_on", True)
    monkeypatch.setattr(environment.numba_adapter, "is_extended", lambda: False)  # by other tests
    monkeypatch.setattr(environment, "registered", list)
    for name in ("ZYGOTE_PY_VERIFY", "ZYGOTE_PY_DUMP", "ZYGOTE_PY_CACHE", "ZYGOTE_PY_CACHE_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ZYGOTE_PY_CACHE_DIR", str(found.path))
    stages = compile.compile_gradient

    def counted(*args):
        found.compilations += 1
        return stages(*args)

    monkeypatch.setattr(compile, "compile_gradient", counted)
    return found


def test_it_is_found_again(here):
    assert here.run() == COMPILED
    assert here.run() == READ
    assert [len(here.files(kind)) for kind in (".py", ".code", "")] == [1, 1, 2]
    namespace = {}
    exec(here.files(".py")[0].read_text(), namespace)  # it is a module
    assert namespace["scaled_gradient"].py_func(2.0) == 12.0


@pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
def test_the_folder_is_for_the_user_alone(here):
    here.run()
    assert here.path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", [".py", ".code"])
@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "missing", "nonsense", "a folder"])
def test_damaged_files(here, kind, damage):
    here.run()
    (path,) = here.files(kind)
    data = path.read_bytes()
    changed = {"cut": data[: len(data) // 2], "changed": data[:-5] + b"x" + data[-4:], "empty": b""}
    if damage in changed:
        path.write_bytes(changed[damage])
    else:
        path.unlink()
    if damage == "nonsense":  # with a digest that is right
        assert Folder(here.path, 1e9).write(path.name, b'# {"name": 1}\nnonsense')
    if damage == "a folder":
        path.mkdir()
    assert here.run() == (kind == ".py", kind == ".py" and damage != "a folder")
    if damage != "a folder":
        assert here.run() == READ


def test_what_changes_while_it_is_compiled_is_not_kept(here, monkeypatch):
    stages = compile.compile_gradient

    def changing(*args):
        made = stages(*args)
        monkeypatch.setitem(globals(), "FACTOR", 5)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(compile, "compile_gradient", changing)
        assert gradient(scaled)(2.0) == 20.0
    assert here.run() == READ
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert here.run() == COMPILED


def test_whatever_an_object_raises_when_it_is_looked_at(here, monkeypatch):
    def look(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(records, "fingerprint", look)
    assert here.run() == COMPILED
    assert not here.path.exists()


def test_switched_off(here, monkeypatch):
    monkeypatch.setenv("ZYGOTE_PY_CACHE", "off")
    assert here.run() == here.run() == COMPILED
    assert not here.path.exists()


def test_a_folder_that_cannot_be_made(here, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ZYGOTE_PY_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert here.run() == here.run() == COMPILED


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only(here):
    here.path.mkdir()
    here.path.chmod(0o500)
    assert here.run() == here.run() == COMPILED


@pytest.mark.parametrize(("module", "function"), [(tempfile, "mkstemp"), (os, "replace")])
def test_a_disk_that_is_full(here, monkeypatch, module, function):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, function, full)
        assert here.run() == COMPILED
    assert not here.files("")
    assert here.run() == COMPILED
    assert here.run() == READ


def names(count: int) -> list[str]:
    return [f"{number:040x}.py" for number in range(count)]


def test_the_files_used_longest_ago_are_deleted_first(tmp_path):
    small = Folder(tmp_path, 1000)
    for age, name in zip((40, 30, 20), names(3), strict=True):
        assert small.write(name, b"x" * 200)
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    assert small.read(names(1)[0]) == b"x" * 200
    assert small.write(names(4)[3], b"x" * 200)
    assert [small.read(name) is not None for name in names(4)] == [True, False, True, True]
    assert not small.write(names(5)[4], b"x" * 1000)
    assert small.info().bytes <= 1000


def test_what_somebody_else_has_in_the_folder_is_left_alone(tmp_path):
    others = ["model.py", "notes.txt", "a.code", f"{'a' * 40}.txt", "run.tmp"]
    for name in others:
        (tmp_path / name).write_text("of the user")
    small = Folder(tmp_path, 200)
    for name in names(3):
        small.write(name, b"x" * 100)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, names(3)[2]])
    small.clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


def test_what_a_process_left_that_was_ended(tmp_path):
    found = Folder(tmp_path, 1e6)
    for age, name in [(7200, "old"), (10, "new")]:
        path = tmp_path / f"{names(1)[0]}.{name}.tmp"
        path.write_bytes(b"x")
        os.utime(path, (time.time() - age,) * 2)
    found.write(names(1)[0], b"x")
    assert [path.name for path in tmp_path.glob("*.tmp")] == [f"{names(1)[0]}.new.tmp"]


def test_many_at_once(tmp_path):
    contents = [bytes([number]) * 100_000 for number in range(8)]
    shared = Folder(tmp_path, 1e9)

    def write_and_read(content: bytes) -> list[bytes | None]:
        found = []
        for _ in range(20):
            assert shared.write(names(1)[0], content)
            found.append(shared.read(names(1)[0]))
        return found

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(write_and_read, contents):
            assert set(found) <= set(contents)
    assert [path.name for path in tmp_path.iterdir()] == names(1)


@pytest.mark.parametrize(("size", "most"), [("2", 2e6), ("", 512e6), ("much", 512e6), ("-1", 0.0), ("nan", 0.0)])
def test_the_size_that_the_environment_sets(monkeypatch, size, most):
    monkeypatch.setenv("ZYGOTE_PY_CACHE_SIZE", size)
    assert folder_named().most_bytes == most
    monkeypatch.setenv("ZYGOTE_PY_CACHE_SIZE", "inf")
    assert folder_named().most_bytes > 1e30


def test_commands(here, monkeypatch, capsys):
    here.run()
    assert cli.main(["cache", "info"]) == 0
    printed = capsys.readouterr().out
    assert f"folder: {here.path}\n" in printed
    assert "gradients: 1\n" in printed
    assert "of at most 512.0 MB" in printed
    assert cli.main(["cache", "clear"]) == 0
    assert "1 gradient deleted" in capsys.readouterr().out
    assert not here.path.exists()
    monkeypatch.setenv("ZYGOTE_PY_CACHE", "off")
    assert cli.main(["cache", "info"]) == 0
    assert "switched off" in capsys.readouterr().out
    assert cli.main(["cache", "clear"]) == 0
    monkeypatch.delenv("ZYGOTE_PY_CACHE")
    assert here.run() == COMPILED
