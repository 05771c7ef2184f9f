"""The files of the cache: damaged, missing, too many, written by several at once, in folders that cannot be used."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from numba import types

from zygote_py import cache, compiler, gradient
from zygote_py.cache import Folder, environment, folder, folder_named
from zygote_py.cli import commands as cli
from zygote_py.numba_adapter.target import stored

FACTOR = 3


def scaled(x):
    return FACTOR * x * x


class Here:
    """Makes gradients of `scaled` in this process as if each time it were a new one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.compilations = 0

    def run(self, *, is_new: bool = True) -> tuple[bool, bool]:
        """Whether stages ran, and whether machine code was read; in the same process if it is not new."""
        before = self.compilations
        stored._held.clear()
        if is_new:
            folder.PROCESS.clear()
        df = gradient(scaled)
        assert df(2.0) == 4.0 * FACTOR
        return self.compilations > before, bool(sum(df._now.dispatcher._cache_hits.values()))

    def files(self, suffix: str) -> list[Path]:
        return sorted(self.path.glob(f"*{suffix}"))


COMPILED, READ = (True, False), (False, True)


@pytest.fixture
def here(tmp_path, monkeypatch):
    found = Here(tmp_path / "cache")
    folder.PROCESS.clear()
    monkeypatch.setattr(folder, "_switched_on", True)
    monkeypatch.setattr(environment.numba_adapter, "is_extended", lambda: False)  # by other tests
    monkeypatch.setattr(environment, "registered", list)
    for name in ("ZYGOTE_PY_VERIFY", "ZYGOTE_PY_DUMP", "ZYGOTE_PY_CACHE", "ZYGOTE_PY_CACHE_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ZYGOTE_PY_CACHE_DIR", str(found.path))
    stages = compiler.compile_gradient

    def counted(*args):
        found.compilations += 1
        return stages(*args)

    monkeypatch.setattr(compiler, "compile_gradient", counted)
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
    assert here.run() == (kind == ".py", kind == ".py")
    if damage != "a folder":
        assert here.run() == READ


HAS_RIGHTS = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has other rights")


def cubed(x):
    return x**FACTOR


@pytest.mark.parametrize("kind", [".py", ".code"])
def test_files_that_were_exchanged(here, kind):
    here.run()
    assert gradient(cubed)(2.0) == 12.0
    one, other = here.files(kind)
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    assert here.run() == (kind == ".py", kind == ".py")
    assert gradient(cubed)(2.0) == 12.0


def test_a_file_under_the_name_of_another_kind(tmp_path):
    key = "a" * 40
    names = [f"{key}.py", f"{key}.{'0' * 16}.code", f"{key}.{'1' * 16}.code", f"{'b' * 40}.py"]
    shared = Folder(tmp_path, 1e6)
    for name in names:
        shared.write(name, name.encode())
    contents = {name: (tmp_path / name).read_bytes() for name in names}
    for name in names:
        assert shared.read(name) == name.encode()
        for other in set(names) - {name}:
            (tmp_path / name).write_bytes(contents[other])
            assert shared.read(name) is None
        (tmp_path / name).write_bytes(contents[name])


def test_a_file_of_before_is_not_taken(tmp_path):
    content = b"of an older version"
    (tmp_path / names(1)[0]).write_bytes(b"# " + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    assert Folder(tmp_path, 1e6).read(names(1)[0]) is None


def _pipe(path):
    os.mkfifo(path)


def _socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)  # a path of at most a hundred characters


def _link(path):
    content = path.parent / "content"
    Folder(path.parent, 1e6).write(path.name, b"x")
    path.rename(content)
    path.symlink_to(content)
    assert path.read_bytes().endswith(b"x")


@HAS_RIGHTS
@pytest.mark.parametrize(
    "make",
    [_pipe, _socket, _link, Path.mkdir, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to(path)],
)
def test_what_is_no_file(tmp_path, monkeypatch, make):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / names(1)[0]
    make(path)
    found = Folder(tmp_path, 1e6)
    assert found.read(path.name) is None
    found.info()
    assert found.write(path.name, b"y") == (make is not Path.mkdir)
    assert found.read(path.name) == (None if make is Path.mkdir else b"y")
    found.clear()


@HAS_RIGHTS
def test_a_pipe_in_the_place_of_the_folder(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    found = Folder(tmp_path / "pipe", 1e6)
    assert found.read(names(1)[0]) is None
    assert not found.write(names(1)[0], b"x")
    assert found.info().refusal == "it is not a folder"


@HAS_RIGHTS
@pytest.mark.parametrize("mode", [0o770, 0o777, 0o722, 0o1777, 0o2770, 0o702])
def test_a_folder_that_others_may_write_to(here, capsys, mode):
    here.run()
    here.path.chmod(mode)
    before = {path: path.read_bytes() for path in here.files("")}
    assert here.run() == COMPILED
    assert gradient(cubed)(2.0) == 12.0
    assert {path: path.read_bytes() for path in here.files("")} == before
    assert cli.main(["cache", "info"]) == 0
    assert f"not used: others may write to it (its mode is {mode:o})" in capsys.readouterr().out
    here.path.chmod(0o755)
    assert here.run() == READ


@HAS_RIGHTS
@pytest.mark.parametrize("kind", [".py", ".code"])
@pytest.mark.parametrize("mode", [0o660, 0o606, 0o622])
def test_a_file_that_others_may_write_to(here, kind, mode):
    here.run()
    (path,) = here.files(kind)
    path.chmod(mode)
    assert here.run() == (kind == ".py", kind == ".py")
    assert path.stat().st_mode & 0o777 == 0o600  # it was written anew
    assert here.run() == READ


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("what", ["the folder", ".py", ".code"])
def test_what_another_user_owns(here, capsys, what):
    here.run()
    (path,) = [here.path] if what == "the folder" else here.files(what)
    os.chown(path, 12345, -1)
    assert here.run() == (what != ".code", what == ".py")
    if what == "the folder":
        assert here.run() == COMPILED
        assert cli.main(["cache", "info"]) == 0
        assert "not used: it belongs to the user 12345" in capsys.readouterr().out
        os.chown(path, os.geteuid(), -1)
    assert here.run() == READ


@HAS_RIGHTS
def test_what_another_user_reads(here, monkeypatch):
    here.run()
    another = os.geteuid() + 1
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: another)
        assert here.run() == COMPILED
    assert here.run() == READ


@HAS_RIGHTS
def test_a_lax_umask(here):
    before = os.umask(0)
    try:
        here.run()
    finally:
        os.umask(before)
    assert here.run() == READ
    assert {path.stat().st_mode & 0o077 for path in (here.path, *here.files(""))} == {0}


def test_a_folder_that_is_exchanged_while_it_is_written_to(tmp_path, monkeypatch):
    path, other = tmp_path / "cache", tmp_path / "other"
    other.mkdir()
    make = tempfile.mkstemp

    def exchanging(**words):
        path.rename(tmp_path / "moved")
        other.rename(path)
        return make(**words)

    if os.open in os.supports_dir_fd:
        monkeypatch.setattr(tempfile, "mkstemp", exchanging)
        assert not Folder(path, 1e6).write(names(1)[0], b"x")
        assert not list(path.iterdir())
        assert not list((tmp_path / "moved").iterdir())


def test_what_changes_while_it_is_compiled_is_not_kept(here, monkeypatch):
    stages = compiler.compile_gradient

    def changing(*args):
        made = stages(*args)
        monkeypatch.setitem(globals(), "FACTOR", 5)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(compiler, "compile_gradient", changing)
        assert gradient(scaled)(2.0) == 20.0
    assert here.run() == READ
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert here.run() == COMPILED


def test_whatever_an_object_raises_when_it_is_looked_at(here, monkeypatch):
    def look(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(environment, "fingerprint", look)
    assert here.run() == COMPILED
    assert not here.path.exists()


@pytest.mark.parametrize("how", ["0", "off", "no", "False", "switch"])
def test_switched_off(here, monkeypatch, how):
    assert here.run() == COMPILED
    assert here.run() == READ
    if how == "switch":
        cache.switch(False)
    else:
        monkeypatch.setenv("ZYGOTE_PY_CACHE", how)
    assert cache.folder_in_use() is None
    assert here.run() == here.run() == COMPILED
    assert here.run(is_new=False) == READ
    assert len(here.files("")) == 2


def test_one_look_gives_the_kernel_and_where_its_code_is_kept(here):
    request, kinds = gradient(scaled)._request, (types.float64,)
    made, passed = cache.find(request, kinds, ())
    assert made.compiled is not None
    read, passed_again = cache.find(request, kinds, ())
    assert read.compiled is None
    assert read.source == made.source
    assert passed == passed_again == ()
    assert read.code == made.code  # the same place: what one process writes another reads
    name = read.code.name_of(kinds, "a machine")
    assert name != read.code.name_of(kinds, "another machine")
    assert read.code.read(name) is None
    made.code.write(name, b"code")
    assert read.code.read(name) == b"code"
    cache.switch(False)
    other, _ = cache.find(request, kinds, ())
    assert other.compiled is not None
    assert other.code.read(name) is None


def test_other_packages_import_the_cache_by_one_module():
    root = Path(cache.__file__).parent
    for path in root.parent.rglob("*.py"):
        if path.parent != root:
            assert not re.search(r"zygote_py\.cache\.\w+ import|zygote_py\.cache import environment", path.read_text())


def test_a_folder_that_cannot_be_made(here, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ZYGOTE_PY_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert here.run() == here.run() == COMPILED
    assert here.run(is_new=False) == READ


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


def test_the_memory_of_a_process_is_limited():
    kept = folder._Process(1000.0)
    for name in "abcd":
        assert kept.write(name, bytes(300))
        kept.read("a")
    assert [name for name in "abcd" if kept.read(name)] == ["a", "c", "d"]
    assert not kept.write("large", bytes(2000))
    assert kept.read("large") is None
