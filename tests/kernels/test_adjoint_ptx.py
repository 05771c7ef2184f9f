"""Adjoint kernels compiled without a device, and assembled by `ptxas`, whose figures are compared with the kernel's.

`pytest --native tests/kernels/test_adjoint_ptx.py`, since the code has to be optimised for that; `python -m
tests.kernels.test_adjoint_ptx` prints the figures and writes them to ptxas.json.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import config, types

from zygote_py import adjoint_kernel

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
if config.ENABLE_CUDASIM:
    pytest.skip("the simulator does not compile", allow_module_level=True)
if int(config.OPT) == 0:
    pytest.skip("without --native, nothing is optimised", allow_module_level=True)

from benchmarks.cuda import n_body
from tests.kernels import test_adjoint_kernel_cuda as kernels
from zygote_py.numba_adapter.cuda import launch

GOLDEN = Path(__file__).with_name("ptxas.json")
CAPABILITIES = [(8, 0), (9, 0), (10, 0)]
_F8, _F4, _I8 = types.float64, types.float32, types.int64
_V, _M = _F8[::1], _F8[:, ::1]
CASES = {
    "elementwise": (kernels.elementwise, (_V, _V), 128),
    "elementwise32": (kernels.elementwise, (_F4[::1], _F4[::1]), 128),
    "strided": (kernels.strided, (_V, _V, _V), 128),
    "in_place": (kernels.in_place, (_V, _I8), 128),
    "neighbours": (kernels.neighbours, (_V, _V), 128),
    "local": (kernels.local, (_V, _M), 128),
    "reversed_in_blocks": (kernels.reversed_in_blocks, (_V, _V), 4),
    "reversed_with_dynamic_memory": (kernels.reversed_with_dynamic_memory, (_V, _V), 128),
    "product": (kernels.product, (_M, _M, _M), (3, 3)),
    "forces": (kernels.forces, (_V, _V, _V, _I8), 4),
    "tree": (kernels.tree, (_V, _V), 8),
    "histogram": (kernels.histogram, (_V, _I8[::1], _V, _M), 128),
    "extremes": (kernels.extremes, (_V, _I8[::1], _V, _V), 128),
    "softmax": (kernels.softmax, (_V, _V), 4),
    "plane": (kernels.plane, (_M, _M, _F8), (16, 16)),
    "n_body": (n_body.kernels(np.dtype(np.float64))[0], (_V,) * 7, n_body.TILE),
    "n_body32": (n_body.kernels(np.dtype(np.float32))[0], (_F4[::1],) * 7, n_body.TILE),
    "newton": (kernels.newton, (_V, _V, _I8[::1]), 128),
}
# Kernels whose adjoint takes more than 2.5 times the registers, and why.
EXPLAINED = {"tree": "three records in global memory, whose places are 64-bit numbers"}


def with_shadows(kinds):
    return [
        each
        for kind in kinds
        for each in ([kind] * 2 if isinstance(kind, types.Array) and isinstance(kind.dtype, types.Float) else [kind])
    ]


def assembled(text, capability, folder):
    """Return registers, bytes of the stack frame, and of spills, as `ptxas -v` tells them."""
    source = folder / "kernel.ptx"
    source.write_text(text)
    chip = f"-arch=sm_{capability[0]}{capability[1]}"
    command = [launch.tool("ptxas"), "-v", chip, source, "-o", folder / "kernel.cubin"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    patterns = (r"Used (\d+) registers", r"(\d+) bytes stack frame", r"(\d+) bytes spill stores")
    return [max(map(int, re.findall(pattern, done.stderr)), default=0) for pattern in patterns]


def figures(name, capability, folder):
    """Return those of a kernel and of its adjoint."""
    kernel, kinds, threads = CASES[name]
    own = assembled(launch.ptx(kernel, kinds, capability), capability, folder)
    adjoint = adjoint_kernel(kernel).inspect_ptx(*with_shadows(kinds), capability=capability, threads=threads)
    assert f".target sm_{capability[0]}{capability[1]}" in adjoint
    assert "NRT" not in adjoint
    assert "malloc" not in adjoint
    return own, assembled(adjoint, capability, folder)


def version():
    done = subprocess.run([launch.tool("ptxas"), "--version"], capture_output=True, text=True, check=True)
    return re.findall(r"V([\d.]+)", done.stdout)[-1]


@pytest.fixture
def golden():
    known = json.loads(GOLDEN.read_text())
    return known["figures"] if known["ptxas"] == version() else {}


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_spilled_and_registers_suffice(name, capability, tmp_path, golden):
    (registers, stack, spills), of_adjoint = figures(name, capability, tmp_path)
    print(f"{name:30} {capability}: registers {registers:3} {of_adjoint[0]:3}, stack {stack} {of_adjoint[1]}")
    assert of_adjoint[2] <= spills
    assert of_adjoint[1] <= stack + 8 * 16  # arrays of a thread, of at most 16 numbers here
    assert of_adjoint[0] <= 2.5 * registers or name in EXPLAINED
    key = f"{name} {capability[0]}.{capability[1]}"
    if key in golden:
        assert of_adjoint[0] <= 1.15 * golden[key][0] + 2
        assert of_adjoint[1] <= golden[key][1]


def test_the_machine_code_is_shown():
    text = adjoint_kernel(kernels.elementwise).inspect_sass("f64[::1], f64[::1], f64[::1], f64[::1]")
    assert "elementwise_adjoint" in text
    assert re.search(r"\bEXIT\b", text)


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    made = {}
    with TemporaryDirectory() as where:
        for each in CASES:
            for chip in CAPABILITIES:
                first, second = figures(each, chip, Path(where))
                made[f"{each} {chip[0]}.{chip[1]}"] = second[:2]
                print(
                    f"{each:30} {chip}: registers {first[0]:3} {second[0]:3}, stack {first[1]} {second[1]}, {second[2]}"
                )
    GOLDEN.write_text(json.dumps({"ptxas": version(), "figures": made}, indent=1) + "\n")
    sys.exit()
