"""The command line: `zygote-py show` prints the stages of the compiler for a function, `plan` what it keeps.

    zygote-py show pow.py:pow --types "f64, i64"
    zygote-py show pow.py:pow --types "f64, i64" --stage python
    zygote-py show kernels.py:saxpy --types "f32, f32[::1], f32[::1]" --target cuda --stage ptx
    zygote-py plan kernels.py:saxpy --types "f64, f64[:], f64[:]" --sizes "x=1000, y=1000"
    zygote-py demo
    zygote-py cache info

The exit code is 0 for success, 1 for a function that cannot be differentiated or a fit that does not converge, and 2
for invalid arguments. `show` imports the file, which runs its top-level code, and does not call any function.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

STAGES = ("primal", "adjoint", "python", "llvm", "asm")
ON_DEVICES = ("python", "ptx", "sass")


class UsageError(Exception):
    """Invalid arguments: there is no such file, function or type."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments of the command; by default those of the process.

    Returns
    -------
    int
        The exit code.
    """
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except UsageError as error:
        print(f"zygote-py: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, for example `head`, has closed the pipe
        sys.stderr.close()
        return 0
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="zygote-py", description="Exact gradients of Numba functions by source-to-source compilation."
    )
    version = importlib.metadata.version("zygote-py")
    parser.add_argument("--version", action="version", version=f"zygote-py {version}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    show = commands.add_parser(
        "show",
        help="print the IR, the emitted Python or the machine code of a function's gradient",
        description="Print the stages of the compiler for a function: by default its primal and its adjoint.",
    )
    show.add_argument("function", metavar="FILE.py:FUNCTION", help="the function, and the file that defines it")
    show.add_argument("--types", help='the types of its arguments, such as "f64, i64" or "f64[:, :], bool"')
    show.add_argument("--stage", choices=tuple(dict.fromkeys((*STAGES, *ON_DEVICES))), help="print this stage only")
    show.add_argument(
        "--target",
        choices=("cpu", "cuda"),
        default="cpu",
        help="the processor, or a device: then the function may be a kernel, whose adjoint is printed",
    )
    show.add_argument("--capability", default="9.0", help="the compute capability of the device (default: %(default)s)")
    show.add_argument(
        "--threads", default="128", help='the threads of a block, such as "16, 16" (default: %(default)s)'
    )
    show.add_argument(
        "--wrt", help='the parameters to differentiate with respect to, by name or position, such as "x" or "0, 2"'
    )
    show.add_argument(
        "--mode",
        choices=("auto", "forward", "reverse"),
        help="the mode of the gradient (default: auto, or that of the gradient that is named)",
    )
    show.set_defaults(run=_show)

    plan = commands.add_parser(
        "plan",
        help="print what a function's gradient keeps, recomputes and allocates",
        description="Print what the gradient of a function keeps, recomputes and allocates. Nothing of it runs.",
    )
    plan.add_argument("function", metavar="FILE.py:FUNCTION", help="the function, and the file that defines it")
    plan.add_argument("--types", help='the types of its arguments, such as "f64[:, :], i64"')
    plan.add_argument("--sizes", default="", help='shapes of arrays and values of integers, such as "x=100x3, n=50"')
    plan.add_argument("--wrt", help="the parameters to differentiate with respect to")
    plan.add_argument("--mode", choices=("auto", "forward", "reverse"), help="the mode of the gradient")
    plan.add_argument("--json", action="store_true", help="print the plan as JSON")
    plan.set_defaults(run=_plan)

    demo = commands.add_parser(
        "demo",
        help="fit the Lotka-Volterra equations to a record of hares and lynxes",
        description="Fit the Lotka-Volterra equations to the Hudson's Bay Company record of hare and lynx pelts.",
    )
    demo.add_argument("--output", type=Path, default=Path("lotka_volterra.png"), help="the plot (default: %(default)s)")
    demo.add_argument("--no-plot", action="store_true", help="do not write a plot")
    demo.set_defaults(run=_demo)

    cache = commands.add_parser(
        "cache",
        help="show or empty the cache of compiled gradients",
        description="The folder of cached gradients: ZYGOTE_PY_CACHE_DIR, or the platform's default.",
    )
    cache.add_argument(
        "action", choices=("info", "clear"), help="show the location and size of the cache, or delete its entries"
    )
    cache.set_defaults(run=_cache)
    return parser


def _plan(options: argparse.Namespace) -> int:
    import zygote_py as zg

    function = _load(options.function)
    types = _types(function, options)
    try:
        derivative = _derivative(function, options)
        _check_number(derivative, types)
        names, sizes = list(derivative._request.signature.parameters), _sizes(options.sizes)
        if unknown := sorted(set(sizes) - set(names)):
            raise UsageError(f"--sizes: no parameter {', '.join(unknown)}: there are {', '.join(names)}")
        plan = derivative._plan(types, list(map(sizes.get, names)))
    except zg.DifferentiationError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(plan.as_dict(), indent=2) if options.json else plan)
    return 0


def _sizes(text: str) -> dict[str, int | tuple[int, ...]]:
    """Return the shapes and the integers in a text such as "x=100x3, n=50" by the names of parameters."""
    found: dict[str, int | tuple[int, ...]] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        name, _, size = item.partition("=")
        try:
            lengths = tuple(int(each) for each in size.split("x"))
        except ValueError:
            raise UsageError(f'--sizes {item}: it is such as "x=100x3" or "n=50"') from None
        found[name.strip()] = lengths if len(lengths) > 1 else lengths[0]
    return found


def _types(function: Callable[..., object], options: argparse.Namespace) -> tuple[Any, ...]:
    """Return the types that the user names."""
    from zygote_py import ir

    if options.types is None and (required := _required(function)):
        raise UsageError(f'`{options.function}` needs --types for {required}, such as --types "f64, i64"')
    try:
        return tuple(ir.parse_types(options.types or ""))
    except ValueError as error:
        raise UsageError(f"--types: {error}") from error


def _show(options: argparse.Namespace) -> int:
    # Imported here because Numba takes a second to import, and `--help` and `--version` do not need it.
    import zygote_py as zg

    function = _load(options.function)
    types = _types(function, options)
    known = ON_DEVICES if options.target == "cuda" else STAGES
    if options.stage is not None and options.stage not in known:
        raise UsageError(f"--stage {options.stage}: for --target {options.target} it is one of {', '.join(known)}")
    try:
        if options.target == "cuda":
            print(_on_device(function, types, options).strip("\n"))
            return 0
        derivative = _derivative(function, options)
        stages = {
            "primal": derivative.primal_ir,
            "adjoint": derivative.adjoint_ir,
            "python": derivative.source,
            "llvm": derivative.inspect_llvm,
            "asm": derivative.inspect_asm,
        }
        _check_number(derivative, types)
        wanted = ("primal", "adjoint") if options.stage is None else (options.stage,)
        print("\n\n".join(str(stages[stage](*types)).strip("\n") for stage in wanted))
    except zg.DifferentiationError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _derivative(function: Any, options: argparse.Namespace) -> Any:
    """Return the derivative to show: the function itself, or the gradient of it, or of what it is a gradient of."""
    import zygote_py as zg
    from zygote_py import compiler

    if isinstance(function, zg.DerivativeFunction) and options.wrt is None and options.mode is None:
        return function
    is_gradient = isinstance(function, zg.DerivativeFunction) and isinstance(function.form, compiler.GradientForm)
    primal = function.primal if is_gradient else function
    return zg.gradient(primal, wrt=_wrt(options.wrt), mode=options.mode or "auto")


def _on_device(function: Any, types: Sequence[Any], options: argparse.Namespace) -> str:
    """Return the adjoint of a kernel, or a derivative as a device function, as text."""
    from zygote_py import numba_adapter
    from zygote_py.kernels import adjoint_kernels, device_functions

    stage = options.stage or "python"
    try:
        major, minor = map(int, options.capability.split("."))
        threads = tuple(map(int, options.threads.split(",")))
    except ValueError:
        raise UsageError("--capability is such as 9.0, --threads such as 128 or 16, 16") from None
    try:
        if numba_adapter.is_kernel(function):
            active = options.wrt and [name.strip() for name in options.wrt.split(",")]
            return adjoint_kernels.shown(function, active, types, stage, (major, minor), threads)
        if stage == "sass":
            raise UsageError("--stage sass is that of a kernel")
        derivative = _derivative(function, options)
        _check_number(derivative, types)
        return device_functions.shown(derivative, tuple(types), stage, (major, minor))
    except (ImportError, RuntimeError) as error:
        raise UsageError(str(error)) from error


def _check_number(derivative: Any, types: Sequence[Any]) -> None:
    """Raise a DifferentiationError unless there is one type per parameter."""
    from zygote_py.adjoints import refuse

    try:
        derivative._bind(tuple(types), {})
    except TypeError as error:
        raise refuse(str(error), derivative._request.loc, "name a type for each parameter in --types") from None


def _demo(options: argparse.Namespace) -> int:
    from zygote_py.cli import demo

    return 0 if demo.run(None if options.no_plot else options.output) else 1


def _cache(options: argparse.Namespace) -> int:
    from zygote_py.cache import folder_in_use, folder_named

    folder = folder_named()
    if options.action == "clear":
        before = folder.clear()
        print(f"{_count(before.gradients, 'gradient')} deleted from {before.path}, {_megabytes(before.bytes)}")
        return 0 if not folder.info().files else 1
    info = folder.info()
    print(f"folder: {info.path}" + ("" if folder_in_use() else " (switched off)"))
    if info.refusal:
        print(f"not used: {info.refusal}")
    print(f"gradients: {info.gradients}")
    print(f"size: {_megabytes(info.bytes)} of at most {_megabytes(folder.most_bytes)}")
    return 0


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.1f} MB"


def _load(place: str) -> Callable[..., object]:
    """Return the function that `FILE.py:FUNCTION` denotes; the file is imported under its own name."""
    file, separator, name = place.rpartition(":")
    if not separator or not file or not name:
        raise UsageError(f"`{place}` is not of the form FILE.py:FUNCTION")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"no such file: {file}")
    module_name = path.stem if path.stem not in sys.modules else f"{path.stem}__shown"  # never replace a module
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))  # as `python FILE.py` does
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{file} cannot be run: {type(error).__name__}: {_first_line(error)}") from error
    try:
        function: object = attrgetter(name)(module)
    except AttributeError as error:
        raise UsageError(f"no function `{name}` in {file}") from error
    if not callable(function):
        raise UsageError(f"`{name}` in {file} is not a function")
    return function


def _required(function: Callable[..., object]) -> str:
    """Return the names of the parameters without a default as text; it is empty if there is no signature."""
    try:
        parameters = inspect.signature(inspect.unwrap(getattr(function, "py_func", function))).parameters.values()
    except (TypeError, ValueError):
        return ""
    return ", ".join(p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD)


def _wrt(text: str | None) -> str | int | tuple[str | int, ...] | None:
    """Return the `wrt` argument for `"x"`, `"0"` or `"x, 2"`, as `gradient` expects it."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    items = tuple(int(name) if name.lstrip("-").isdecimal() else name for name in names)
    return items[0] if len(items) == 1 and not text.rstrip().endswith(",") else items


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]
