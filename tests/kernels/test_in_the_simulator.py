"""The tests of this folder that need a device, in the simulator: in a process of its own, since it replaces CUDA."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def test_all_that_need_a_device_pass(request):
    selected = [] if request.config.getoption("markexpr") == "long" else ["-m", "not long"]
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-o",
        "addopts=",
        "-p",
        "no:cacheprovider",
        *selected,
        *map(str, sorted(Path(__file__).parent.glob("test_*_cuda.py"))),
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout + done.stderr
    (passed,) = re.findall(r"(\d+) passed", done.stdout) or ["0"]
    assert int(passed) > 50
    assert "skipped" not in done.stdout
