"""Type checking of a user's code: parameters are kept, and results are not `Any`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = Path(__file__).with_name("typed_user_code.py")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package as it is installed, and the user's code; the checkout has it in other folders."""
    folder = tmp_path_factory.mktemp("typed")
    shutil.copytree(ROOT / "zygote_py", folder / "zygote_py", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("ir", "adjoints"):
        shutil.copytree(ROOT / name, folder / "zygote_py" / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CODE, folder)
    return folder


def run(folder, *command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)


def test_pyright(installed):
    """It finds the marked errors and no others."""
    pyright = shutil.which("pyright", path=f"{Path(sys.executable).parent}") or shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    try:
        works = run(installed, pyright, "--version").returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        works = False
    if not works:
        pytest.skip("pyright has no node, and cannot get it")
    settings = {
        "include": [CODE.name],
        "reportUnnecessaryTypeIgnoreComment": "error",
        "reportMissingModuleSource": False,
    }
    (installed / "pyrightconfig.json").write_text(json.dumps(settings))
    checked = run(installed, pyright, "--pythonpath", sys.executable)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.long
def test_mypy(installed):
    """The same; `.ci/run` checks it together with the package."""
    pytest.importorskip("mypy")
    (installed / "mypy.ini").write_text("[mypy]\nstrict = true\n[mypy-zygote_py.*]\nignore_errors = true\n")
    checked = run(installed, sys.executable, "-m", "mypy", CODE.name)
    assert checked.returncode == 0, checked.stdout


def test_there_is_something_to_find():
    text = CODE.read_text("utf-8")
    assert text.count("# type: ignore[") == 14
    assert text.count("assert_type(") == 12
