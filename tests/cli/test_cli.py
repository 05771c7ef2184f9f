"""The command line: what it prints, its messages and its exit codes."""

from __future__ import annotations

import importlib.metadata
import inspect
import json
import subprocess
import sys

import pytest

from zygote_py.cli import commands as cli, demo as demonstration

POW = """\
def pow(x, n):
    r = 1.0
    while n > 0:
        n -= 1
        r *= x
    return r


def unknown(x):
    return open("file").read() + x


value = 3
raise_later = lambda: 1 / 0
"""

PRIMAL = """\
primal pow(%x: f64, %n: i64) -> f64                # pow.py:1
b0:
  %r0 = const 1.0 : f64
  jump b1
b1:
  %r1: f64 = phi b0: %r0, b2: %r2
  %n1: i64 = phi b0: %n,  b2: %n2
  %c = gt %n1, 0 : bool
  branch %c, b2, b3
b2:
  %n2 = sub %n1, 1 : i64
  %r2 = mul %r1, %x : f64                          # pow.py:5
  jump b1
b3:
  return %r1
"""

ADJOINT = """\
adjoint pow(%dy: f64) -> (f64, none)
b3':
  jump b1'
b1':
  %dr1: f64 = phi b3': %dy, b2': %dr2
  %dx1: f64 = phi b3': 0.0, b2': %dx2
  %e = came_from @b1, b2 : bool
  branch %e, b2', b0'
b2':                                               # of %r2 = mul %r1, %x
  %dr2 = mul %dr1, @x : f64
  %t   = mul %dr1, @r1 : f64
  %dx2 = add %dx1, %t : f64
  jump b1'
b0':
  return %dx1, none
"""


@pytest.fixture
def pow_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}
    path = tmp_path / "pow.py"
    path.write_text(POW)
    yield path
    for name in {"pow", "broken"} - before:
        sys.modules.pop(name, None)


def show(*arguments):
    return cli.main(["show", *map(str, arguments)])


def test_show_prints_primal_and_adjoint(pow_file, capsys):
    assert show(f"{pow_file}:pow", "--types", "f64, i64") == 0
    assert capsys.readouterr().out == PRIMAL + "\n" + ADJOINT


@pytest.mark.parametrize(("stage", "text"), [("primal", PRIMAL), ("adjoint", ADJOINT)])
def test_show_one_stage(pow_file, capsys, stage, text):
    assert show(f"{pow_file}:pow", "--types", "f64,i64", "--stage", stage) == 0
    assert capsys.readouterr().out == text


@pytest.mark.parametrize(("stage", "word"), [("python", "def "), ("llvm", "define "), ("asm", "ret")])
def test_show_later_stages(pow_file, capsys, stage, word):
    assert show(f"{pow_file}:pow", "--types", "f64, i64", "--stage", stage) == 0
    assert word in capsys.readouterr().out


@pytest.mark.parametrize("wrt", ["x", "0"])
def test_show_wrt(pow_file, capsys, wrt):
    assert show(f"{pow_file}:pow", "--types", "f64, i64", "--stage", "python", "--wrt", wrt) == 0
    capsys.readouterr()


def test_show_a_gradient_that_the_file_makes(tmp_path, capsys):
    file = tmp_path / "made.py"
    file.write_text("from zygote_py import gradient\n\n\n@gradient\ndef square(x):\n    return x * x\n")
    assert show(f"{file}:square", "--types", "f64", "--stage", "primal") == 0
    assert "mul %x, %x : f64" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "wrt"),
    [(None, None), ("x", "x"), ("0", 0), ("x, 2", ("x", 2)), ("x,", ("x",)), ("-1", -1)],
)
def test_wrt_as_gradient_takes_it(text, wrt):
    assert cli._wrt(text) == wrt


@pytest.mark.parametrize(
    ("place", "types", "message"),
    [
        ("pow", "f64", "is not of the form FILE.py:FUNCTION"),
        ("{folder}/none.py:pow", "f64", "no such file"),
        ("{file}:none", "f64", "no function `none`"),
        ("{file}:value", "f64", "`value` in {file} is not a function"),
        ("{file}:pow", "f64, i65", "i65"),
        ("{file}:pow", "f64, [", "--types"),
        ("{file}:pow", None, "needs --types for x, n"),
        ("{folder}/broken.py:f", "f64", "broken.py cannot be run: ZeroDivisionError: division by zero"),
        ("{folder}/text.txt:f", "f64", "text.txt is not a Python file"),
    ],
)
def test_bad_usage_is_one_line_and_code_2(pow_file, capsys, place, types, message):
    (pow_file.parent / "broken.py").write_text("1 / 0\n")
    (pow_file.parent / "text.txt").write_text("")
    names = {"file": pow_file, "folder": pow_file.parent}
    assert show(place.format(**names), *(("--types", types) if types else ())) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("zygote-py: ")
    assert message.format(**names) in line


@pytest.mark.parametrize(
    "arguments", [[], ["no-such-command"], ["show"], ["show", "f.py:f", "--types", "f64", "--stage", "no"]]
)
def test_what_argparse_refuses_has_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 2
    assert "usage: zygote-py" in capsys.readouterr().err


@pytest.mark.parametrize(("function", "types"), [("unknown", "f64"), ("pow", "f64")])
def test_a_refusal_is_printed_without_a_traceback(pow_file, capsys, function, types):
    assert show(f"{pow_file}:{function}", "--types", types) == 1
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    assert "pow.py:" in printed.err
    assert not printed.out


KERNEL = """\
from numba import cuda

@cuda.jit
def saxpy(a, x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] += a * x[i]


def square(x):
    return x * x
"""


def test_what_runs_on_a_device_is_shown(tmp_path, capsys):
    file = tmp_path / "kernels.py"
    file.write_text(KERNEL)
    types = ["--types", "f32, f32[::1], f32[::1]", "--target", "cuda"]
    assert cli.main(["show", f"{file}:saxpy", *types, "--wrt", "x, out"]) == 0
    text = capsys.readouterr().out
    assert "def saxpy_adjoint(a, x, dx, out, dout):" in text
    assert "dx[i] += " in text
    assert cli.main(["show", f"{file}:square", "--types", "f32", "--target", "cuda"]) == 0
    assert "@cuda.jit(device=True)" in capsys.readouterr().out
    for more, message in (
        (["--stage", "llvm"], "for --target cuda it is one of python, ptx, sass"),
        (["--capability", "x"], "--capability is such as 9.0"),
    ):
        assert cli.main(["show", f"{file}:saxpy", *types, *more]) == 2
        assert message in capsys.readouterr().err
    assert cli.main(["show", f"{file}:square", "--types", "f32", "--stage", "ptx"]) == 2
    assert "for --target cpu it is one of" in capsys.readouterr().err


def test_demo(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(demonstration, "run", lambda output: calls.append(output) or True)
    assert cli.main(["demo", "--output", str(tmp_path / "a.png")]) == 0
    assert cli.main(["demo", "--no-plot"]) == 0
    assert calls == [tmp_path / "a.png", None]
    monkeypatch.setattr(demonstration, "run", lambda output: False)
    assert cli.main(["demo"]) == 1


def test_plan(pow_file, capsys):
    place = f"{pow_file}:pow"
    assert cli.main(["plan", place, "--types", "f64, i64", "--sizes", "n=1000", "--mode", "reverse"]) == 0
    assert "at most alive at a time: 8 * n bytes = 8,000" in capsys.readouterr().out
    assert cli.main(["plan", place, "--types", "f64, i64", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mode"] == "forward"
    assert cli.main(["plan", place, "--types", "f64, i64", "--sizes", "n=many"]) == 2
    assert "--sizes n=many" in capsys.readouterr().err
    assert cli.main(["plan", place, "--types", "f64, i64", "--sizes", "m=3"]) == 2
    assert "no parameter m: there are x, n" in capsys.readouterr().err


def test_version_as_installed():
    command = [
        sys.executable,
        "-c",
        "import sys; from zygote_py.cli.commands import main; sys.exit(main())",
        "--version",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"zygote-py {importlib.metadata.version('zygote-py')}\n"


def test_every_command_has_help():
    parser = cli._parser()
    assert "show" in parser.format_help()
    assert "demo" in parser.format_help()
    assert "zygote-py show" in inspect.getdoc(cli)
