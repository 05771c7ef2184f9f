"""The order of the layers, read off the imports: zygote_py -> adjoints -> ir, and one door to Numba's inside."""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import numba
import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"zygote_py": "zygote_py", "ir": "zygote_py.ir", "adjoints": "zygote_py.adjoints"}
ADAPTER = "zygote_py.numba_adapter"
PUBLIC_NUMBA = {"types", "extending", "typed", "cuda", "experimental"}
PRIVATE_NUMBA = {module.name for module in pkgutil.iter_modules(numba.__path__)} - PUBLIC_NUMBA
MOST_LINES = 550
MOST_ENTRIES = 12


def module_name(path: Path) -> str:
    folder, *rest = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([FOLDERS[folder], *(part for part in rest if part != "__init__")])


MODULES = {module_name(path): path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))}


@functools.cache
def trees() -> dict[str, ast.Module]:
    """The syntax trees of the modules, by their names."""
    return {name: ast.parse(path.read_text("utf-8"), str(path)) for name, path in MODULES.items()}


def names_in_stub(package: str) -> Iterator[tuple[str, str]]:
    """The names that a package imports lazily, and where each is defined."""
    for node in ast.parse(MODULES[package].with_suffix(".pyi").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            yield from ((f"{package}.{alias.name}", f"{package}.{node.module}.{alias.name}") for alias in node.names)


STUBS = [name for name, path in MODULES.items() if path.with_suffix(".pyi").exists()]
DEFINED = dict(pair for package in STUBS for pair in names_in_stub(package))


def imports(name: str, nodes: Iterator[ast.AST]) -> Iterator[str]:
    """The full names that a module imports, modules and what they define, each where it is defined.

    An attribute of a package that has a stub counts as an import, too.
    """
    return (DEFINED.get(full_name, full_name) for full_name in _imports(name, [*nodes]))


@functools.cache
def all_imports(name: str) -> frozenset[str]:
    """The full names of all that a module imports, anywhere in its text."""
    return frozenset(imports(name, ast.walk(trees()[name])))


@functools.cache
def words_of_tests() -> frozenset[str]:
    """The words in the files of the tests."""
    paths = (ROOT / "tests").rglob("*.py")
    return frozenset(word for path in paths for word in re.findall(r"\w+", path.read_text("utf-8")))


def _imports(name: str, nodes: list[ast.AST]) -> Iterator[str]:
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    bound = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if f"{node.module}.{alias.name}" in STUBS
    }
    for node in nodes:
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom():
                above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                module = ".".join([*above, *([node.module] if node.module else [])])
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case ast.Attribute(value=ast.Name(id)) if id in bound:
                yield f"{bound[id]}.{node.attr}"
            case _:
                pass


def ours(full_name: str) -> str | None:
    """Return the module of this package that contains a name out of `imports`."""
    while full_name and full_name not in MODULES:
        full_name = full_name.rpartition(".")[0]
    return full_name or None


@pytest.mark.parametrize(
    ("layer", "below"),
    [("zygote_py.ir", ("zygote_py.ir",)), ("zygote_py.adjoints", ("zygote_py.ir", "zygote_py.adjoints"))],
)
def test_a_layer_imports_only_what_is_below_it(layer, below):
    wrong = [
        f"{name} imports {imported}"
        for name, tree in trees().items()
        if f"{name}.".startswith(f"{layer}.")
        for imported in imports(name, ast.walk(tree))
        if imported.split(".")[0] in ("zygote_py", "ir", "adjoints", "benchmarks", "tests")
        and not any(f"{imported}.".startswith(f"{allowed}.") for allowed in below)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("layer", ["zygote_py.emit", "zygote_py.base"])
def test_emission_knows_nothing_of_differentiation(layer):
    wrong = [
        f"{name} imports {imported}"
        for name, tree in trees().items()
        if f"{name}.".startswith(f"{layer}.")
        for imported in imports(name, ast.walk(tree))
        if f"{imported}.".startswith("zygote_py.adjoints.")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("layer", "used"),
    [
        ("zygote_py.ir", {"types", "extending", "config"}),
        ("zygote_py.adjoints", {"types", "extending"}),
        ("zygote_py.emit", {"types"}),
        ("zygote_py.base", set()),
    ],
)
def test_layers_that_use_little_of_numba(layer, used):
    """Its types, the addresses of SciPy's functions and the stack's settings: none of them compiles anything."""
    wrong = []
    for name, tree in trees().items():
        if f"{name}.".startswith(f"{layer}."):
            found = (imported.split(".") for imported in imports(name, ast.walk(tree)))
            wrong += [
                f"{name} imports {'.'.join(parts)}"
                for parts in found
                if parts[0] == "numba" and not used & {*parts[1:2]}
            ]
    assert not wrong, "\n".join(wrong)


def test_the_folders_are_imported_as_parts_of_the_package():
    wrong = [
        f"{name} imports {imported}"
        for name, tree in trees().items()
        for imported in imports(name, ast.walk(tree))
        if imported.split(".")[0] in ("ir", "adjoints", "benchmarks", "tests")
    ]
    assert not wrong, "\n".join(wrong)


def imported_by(name: str) -> set[str]:
    """Return the modules of this package that a module imports: in functions and for the type checker, too."""
    found = {ours(imported) for imported in imports(name, ast.walk(trees()[name]))}
    return {each for each in found if each is not None and each != name}


def test_no_module_imports_itself_through_others():
    TopologicalSorter({name: imported_by(name) for name in trees()}).prepare()  # raises CycleError, with the cycle


def test_arrows_between_folders_point_one_way():
    """A package (`__init__`) and what is run (`__main__`) stand above the modules of their folder."""

    def folder(name: str) -> str:
        stem = MODULES[name].stem
        return name if stem == "__init__" else f"{name.rpartition('.')[0]}{'.*' if stem != '__main__' else '.__main__'}"

    graph: dict[str, set[str]] = {}
    for name in trees():
        graph.setdefault(folder(name), set()).update(folder(each) for each in imported_by(name))
    for above, below in graph.items():
        below.discard(above)
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("package", STUBS)
def test_a_stub_names_what_is_there(package):
    for full_name, place in DEFINED.items():
        if full_name.rpartition(".")[0] == package:
            module, _, name = place.rpartition(".")
            assert hasattr(importlib.import_module(module), name)
            # importing such a module, as `check_adjoint` does, would put it into the place of the function
            assert full_name not in MODULES


@pytest.mark.parametrize("package", sorted({*STUBS} - {"zygote_py"}))
def test_a_stub_names_what_other_folders_use(package):
    outside = [name for name in trees() if not f"{name}.".startswith(f"{package}.")]
    used = {imported for name in outside for imported in all_imports(name)}
    words = words_of_tests()
    names = {
        full_name.rpartition(".")[2]: place
        for full_name, place in DEFINED.items()
        if full_name.rpartition(".")[0] == package
    }
    assert not [name for name, place in names.items() if place not in used and name not in words]


@pytest.mark.parametrize("top", FOLDERS)
def test_no_folder_is_crowded(top):
    entries: dict[Path, set[Path]] = {}
    for path in (path for path in MODULES.values() if path.is_relative_to(ROOT / top)):
        while path.parent != ROOT:
            entries.setdefault(path.parent, set()).add(path)
            path = path.parent
    counts = {
        str(folder.relative_to(ROOT)): len([each for each in found if each.name != "__init__.py"])
        for folder, found in entries.items()
    }
    assert not {folder: count for folder, count in counts.items() if count > MOST_ENTRIES}


def test_the_tests_are_in_the_folders_of_the_source():
    tests = {path.name for path in (ROOT / "tests").iterdir() if any(path.glob("**/test_*.py"))}
    source = {path.name for path in (ROOT / "zygote_py").iterdir() if path.is_dir()} | {"ir", "adjoints"}
    assert tests - source == {"checking", "docs", "language", "project", "random_programs", "seeded_faults"}
    inner = {path for path in (ROOT / "tests/adjoints").iterdir() if path.is_dir() and path.name != "__pycache__"}
    inner |= {path for path in (ROOT / "tests/ir").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert not [path for path in inner if not (ROOT / path.relative_to(ROOT / "tests")).is_dir()]


def test_one_module_of_the_adapter_touches_the_inside_of_numba():
    def private(full_name: str) -> bool:
        first, _, rest = full_name.partition(".")
        return first == "numba" and rest.split(".")[0] in PRIVATE_NUMBA

    wrong = []
    for name, tree in trees().items():
        if name == f"{ADAPTER}.base.internals":
            continue
        wrong += [f"{name} imports {imported}" for imported in imports(name, ast.walk(tree)) if private(imported)]
        chains = (ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        wrong += [f"{name} uses {chain}" for chain in chains if private(chain)]
    assert not wrong, "\n".join(wrong)


def test_no_file_is_too_long():
    files = [*MODULES.values(), *(path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in files}
    assert not {file: length for file, length in lengths.items() if length > MOST_LINES}


@pytest.mark.parametrize("folder", ["ir", "adjoints"])
def test_a_folder_refuses_to_be_imported_bare(folder):
    done = subprocess.run([sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: import zygote_py.{folder}, not {folder}: the folder is part of the package zygote_py"
    )
