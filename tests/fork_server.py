"""Programs in processes that are forked from one in which Numba is ready: a new interpreter takes two seconds for that.

    outcome = forked("import sys; print(sys.argv)", folder, environment)       its code, stdout and stderr

The program sees nothing of what others have done, its folder and its environment are its own, and `zygote_py` is
imported but has compiled nothing. Numba has read its settings before, those in `SETTINGS`, and all have one hash seed:
a program with other settings, or that is to have another seed, needs an interpreter of its own.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SETTINGS = {"NUMBA_OPT": "3"}
SECONDS = 300  # that a program has
SERVER = """
import importlib, json, os, signal, sys, traceback, types
import numba, zygote_py
numba.njit("f8(f8)")(lambda x: x + 1.0)

def run(request):
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(os.path.join(request["results"], name), os.O_WRONLY | os.O_CREAT, 0o600), number)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[:0] = ["", *request["environment"].get("PYTHONPATH", "").split(os.pathsep)]
    importlib.invalidate_caches()
    numba.config.reload_config()
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(request["program"], "<string>", "exec"), main.__dict__)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        code = 1
        signal.alarm({seconds})
        try:
            run(json.loads(line))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@functools.cache
def _server() -> subprocess.Popen[str]:
    environment = {**os.environ, **SETTINGS}
    command = [sys.executable, "-c", SERVER.replace("{seconds}", str(SECONDS))]
    server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)
    return server


def forked(program: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program there; without `fork`, in an interpreter of its own."""
    if not hasattr(os, "fork"):
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=dict(environment), cwd=folder, capture_output=True, text=True, check=False)
    server = _server()
    with TemporaryDirectory() as results:
        request: dict[str, Any] = {"program": program, "folder": str(folder), "environment": dict(environment)}
        assert server.stdin is not None
        assert server.stdout is not None
        print(json.dumps({**request, "results": results}), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        printed = [(Path(results) / name).read_text() for name in ("stdout", "stderr")]
    return subprocess.CompletedProcess([], code, *printed)
