"""The contents of an installation: the packages, the data, the version; and the names in the README exist."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOLDERS = {"zygote_py": "zygote_py", "ir": "zygote_py.ir", "adjoints": "zygote_py.adjoints"}


def packages() -> dict[str, Path]:
    found = {}
    for folder, name in FOLDERS.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            found[".".join([name, *init.parent.relative_to(ROOT / folder).parts])] = init.parent
    return found


def test_every_package_is_installed():
    assert sorted(PYPROJECT["tool"]["setuptools"]["packages"]) == sorted(packages())


def test_every_folder_of_python_files_is_a_package():
    folders = {path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    assert folders == set(packages().values())


def test_version():
    assert importlib.metadata.version("zygote-py") == PYPROJECT["project"]["version"]


def test_typed_and_data_files_are_found():
    assert importlib.resources.files("zygote_py").joinpath("py.typed").is_file()
    assert importlib.resources.files("zygote_py.cli.data").joinpath("hudson_bay_lynx_hare.csv").is_file()


def test_the_readme_names_extras_that_exist():
    named = re.findall(r"pip install.*?\[([\w,]+)\]", (ROOT / "README.md").read_text("utf-8"))
    assert named
    assert {extra for names in named for extra in names.split(",")} <= set(
        PYPROJECT["project"]["optional-dependencies"]
    )


@pytest.mark.long  # it builds a wheel, for which pip fetches setuptools
def test_wheel(tmp_path):
    unwanted = shutil.ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", "notebooks")
    shutil.copytree(ROOT, tmp_path / "source", ignore=unwanted)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", tmp_path, tmp_path / "source"]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"zygote_py"}
    python_files = {
        f"{name.replace('.', '/')}/{path.name}" for name, folder in packages().items() for path in folder.glob("*.py*")
    }
    data = {"zygote_py/py.typed", "zygote_py/cli/data/hudson_bay_lynx_hare.csv"}
    assert {name for name in names if ".dist-info/" not in name} == python_files | data
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_source_distribution_is_asked_to_hold_the_checkout():
    """Each folder and each file at the top of the checkout is a package or named in MANIFEST.in."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    manifest = (ROOT / "MANIFEST.in").read_text("utf-8").splitlines()
    grafted = {line.split()[1] for line in manifest if line.startswith("graft ")}
    assert {name.split("/")[0] for name in listed if "/" in name} == grafted | set(FOLDERS)
    files = {name for name in listed if name and "/" not in name and not name.endswith(".md")}
    assert files == {".gitignore", "LICENSE", "MANIFEST.in", "pyproject.toml"}


@pytest.mark.long  # it builds a source distribution, for which pip fetches setuptools
def test_source_distribution(tmp_path):
    unwanted = shutil.ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, tmp_path / "source", ignore=unwanted)
    command = [sys.executable, "-m", "build", "--sdist", "--outdir", tmp_path, tmp_path / "source"]
    subprocess.run(command, check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    assert {name for name in listed if name} <= names
