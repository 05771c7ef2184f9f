"""The public functions: the forms a function may come in, `wrt`, what is returned, inspection, plain Python."""

from __future__ import annotations

import functools
import inspect
import math
import os
import pickle
import re
import subprocess
import sys
import textwrap
import threading

import numba
import numpy as np
import pytest
from numba import njit, types

import zygote_py as zg
from tests.plain import plain
from zygote_py import GradientFunction, gradient, value_and_gradient


def product(x, y):
    """The product."""
    return x * y


# Forms of functions


def test_def_and_lambda():
    assert gradient(product)(2.0, 3.0) == (3.0, 2.0)
    assert gradient(lambda x, y: x * y)(2.0, 3.0) == (3.0, 2.0)


def test_two_lambdas_on_one_line():
    f, g = gradient(lambda x: x * x), gradient(lambda x: x * x * x)
    assert (f(2.0), g(2.0)) == (4.0, 12.0)


def test_a_function_made_by_exec():
    scope = {}
    exec("def f(x):\n    return x * x\n", scope)
    assert gradient(scope["f"])(3.0) == 6.0
    assert gradient(eval("lambda x: 5 * x"))(3.0) == 5.0


def test_a_function_typed_into_the_interpreter():
    program = "from zygote_py import gradient\ndef f(x):\n    return x * x\n\nprint(gradient(f)(3.0))\n"
    shell = subprocess.run([sys.executable, "-i", "-q"], input=program, capture_output=True, text=True, check=True)
    assert "6.0" in shell.stdout, shell.stderr


@pytest.mark.parametrize(
    "options",
    [{}, {"fastmath": True}, {"error_model": "numpy"}, {"fastmath": True, "error_model": "numpy"}, {"nogil": True}],
)
def test_an_njit_function_keeps_its_options(options):
    f = njit(**options)(lambda x, y: x * x / y)
    np.testing.assert_allclose(gradient(f)(3.0, 2.0), (3.0, -2.25))
    if options.get("error_model") == "numpy":
        assert gradient(f)(3.0, 0.0) == (math.inf, -math.inf)
    else:
        with pytest.raises(ZeroDivisionError):
            gradient(f)(3.0, 0.0)
    source = gradient(f).source(3.0, 2.0)
    for name in ("fastmath", "error_model"):
        assert (name in source) == (name in options)


def test_fastmath_reaches_the_machine_code():
    def total(a):
        s = 0.0
        for v in a:
            s += v * v
        return s

    a = np.arange(3.0)
    assert "fast" in re.sub("fastcc", "", value_and_gradient(njit(fastmath=True)(total)).inspect_llvm(a))
    assert " fast " not in value_and_gradient(njit(total)).inspect_llvm(a)


def test_default_and_keyword_arguments():
    def f(x, y=3.0, n=2):
        return x**n * y

    df = gradient(f)
    assert df(2.0) == (12.0, 4.0, None)
    assert df(2.0, 5.0) == (20.0, 4.0, None)
    assert df(2.0, n=3) == (36.0, 8.0, None)
    assert df(y=5.0, x=2.0) == (20.0, 4.0, None)
    assert df(x=2.0, n=1, y=7.0) == (7.0, 2.0, None)
    assert gradient(f, wrt="y")(2.0) == 4.0


def test_a_default_of_none():
    def f(x, y=None):
        if y is None:
            return x * x
        return x * y

    df = gradient(f)
    assert df(3.0) == (6.0, None)
    assert df(3.0, 5.0) == (5.0, 3.0)


def test_captured_values_are_read_at_each_call():
    def scaled(k):
        def f(x):
            return x * k

        return f

    assert gradient(scaled(2.0))(1.0) == 2.0
    assert gradient(scaled(3.0))(1.0) == 3.0


SCALE = 4.0


def test_globals():
    assert gradient(lambda x: SCALE * x * math.pi)(1.0) == SCALE * math.pi


def test_functions_imported_by_name():
    from math import sin

    assert gradient(lambda x: sin(x))(0.0) == 1.0


# As a decorator


def test_as_a_decorator():
    @gradient
    def f(x, y):
        """Docs."""
        return x * y

    assert isinstance(f, GradientFunction)
    assert f(2.0, 3.0) == (3.0, 2.0)
    assert f.primal(2.0, 3.0) == 6.0
    assert (f.__name__, f.__doc__) == ("f", "Docs.")


def test_as_a_decorator_of_njit():
    @value_and_gradient
    @njit
    def f(x):
        return x * x

    assert f(3.0) == (9.0, 6.0)
    assert f.primal(3.0) == 9.0


def test_as_a_decorator_with_wrt():
    @gradient(wrt="y")
    def f(x, y):
        return x * y

    assert f(2.0, 3.0) == 2.0


def test_on_a_method():
    class Model:
        @staticmethod
        @gradient
        def loss(x):
            return x * x

    assert Model.loss(3.0) == 6.0


# What is returned


def test_one_parameter_gives_the_bare_gradient():
    assert gradient(lambda x: x * x)(3.0) == 6.0
    da = gradient(lambda a: a[0] * a[1])(np.array([2.0, 3.0]))
    assert isinstance(da, np.ndarray)


@pytest.mark.parametrize(
    ("wrt", "expected"),
    [
        (None, (12.0, 8.0, 6.0)),
        ("x", 12.0),
        (0, 12.0),
        (1, 8.0),
        (-1, 6.0),
        ("z", 6.0),
        (("x", 2), (12.0, 6.0)),
        ((2, "x"), (6.0, 12.0)),
        (["y"], (8.0,)),
        (("z", "y", "x"), (6.0, 8.0, 12.0)),
    ],
)
def test_wrt(wrt, expected):
    f = lambda x, y, z: x * y * z
    assert gradient(f, wrt=wrt)(2.0, 3.0, 4.0) == expected
    assert value_and_gradient(f, wrt=wrt)(2.0, 3.0, 4.0) == (24.0, expected)


def test_value_and_gradient():
    v, g = value_and_gradient(lambda x, n: x**n)(2.0, 3)
    assert (v, g) == (8.0, (12.0, None))
    v, g = value_and_gradient(lambda x: x * x)(3.0)
    assert (v, g) == (9.0, 6.0)


def test_one_compilation_for_each_signature():
    df = gradient(lambda x, y: x * y)
    assert df(2.0, 3.0) == (3.0, 2.0)
    assert df(2.0, 3) == (3.0, None)
    assert df(np.float32(2.0), 3.0) == (3.0, 2.0)
    assert df(2.0, 3.0) == (3.0, 2.0)


def test_the_package_names():
    assert zg.gradient is gradient
    assert {"gradient", "value_and_gradient", "GradientFunction", "DifferentiationError"} <= set(zg.__all__)
    assert zg.__version__


# From compiled code, threads


def test_called_from_compiled_code():
    df = gradient(lambda x, a: (x - a) ** 2, wrt="x")

    @njit
    def descend(x, a):
        for _ in range(100):
            x -= 0.1 * df(x, a)
        return x

    assert descend(0.0, 3.0) == pytest.approx(3.0)


def test_called_from_compiled_code_with_tuples_and_arrays():
    vg = value_and_gradient(lambda x, a: x * a[0] * a[1])

    @njit
    def total(x, a):
        v, (dx, da) = vg(x, a)
        return v + dx + da[0] + 10.0 * da[1]

    assert total(2.0, np.array([3.0, 5.0])) == 30.0 + 15.0 + 10.0 + 60.0


def test_called_from_two_threads():
    df = gradient(lambda x: math.sin(x) * x)
    found = []
    threads = [threading.Thread(target=lambda: found.append(df(1.0))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [math.cos(1.0) + math.sin(1.0)] * 4


# Inspection


def power(x, n):
    r = 1.0
    while n > 0:
        n -= 1
        r *= x
    return r


@pytest.mark.parametrize("args", [(2.0, 3), (types.float64, types.int64)])
def test_inspection_takes_arguments_or_types(args):
    df = gradient(power)
    assert df.primal_ir(*args).startswith("primal power(%x: f64, %n: i64) -> f64")
    assert df.adjoint_ir(*args).startswith("adjoint power(%dy: f64) -> (f64, none)")
    assert "def power_gradient" in df.source(*args)
    assert "define " in df.inspect_llvm(*args)
    assert "ret" in df.inspect_asm(*args)


def test_inspection_of_arrays():
    df = gradient(lambda a: a[0] * a[1])
    by_type = df.source(types.float64[::1])
    assert by_type == df.source(np.zeros(2))


def test_emitted_source_is_readable():
    for mode, derived in (("reverse", {"dr", "dx"}), ("forward", {"tr"})):
        source = gradient(power, mode=mode).source(2.0, 3)
        names = set(re.findall(r"\w+", source))
        assert {"x", "n", "r"} <= names
        assert derived & {re.sub(r"\d+$", "", name) for name in names}
        assert "#" in source


def test_a_line_has_no_load_and_no_multiplication():
    llvm = gradient(lambda x: 5 * x + 3).inspect_llvm(types.float64)
    body = llvm[llvm.index("define ") :]
    first = body[: body.index("\n}")]  # the function itself, before its wrappers for Python
    assert "load" not in first
    assert "fmul" not in first
    assert "5.0" in first


def test_emitted_source_runs_alone(tmp_path):
    def f(x, a, n):
        s = x
        for i in range(n):
            s = math.sin(s) * a[i] + x
            if s > 3.0:
                break
        while s < 0.5:
            s = s * 2.0 + 0.1
        return s

    vg = value_and_gradient(f)
    args = (0.7, np.array([0.5, 1.5, -0.25]), 3)
    expected = vg(*args)
    source = vg.source(*args)
    run_plain = plain(source)(*args)
    assert run_plain[0] == pytest.approx(expected[0], rel=1e-14)
    name = re.findall(r"^def (\w+)", source, re.M)[-1]
    (tmp_path / "emitted.py").write_text(source)
    program = f"""\
        import sys
        import numpy as np
        from emitted import {name}
        assert not any(name.startswith("zygote") for name in sys.modules)
        value, (dx, da, dn) = {name}(0.7, np.array([0.5, 1.5, -0.25]), 3)
        assert dn is None
        print(value, dx, *da)
    """
    for disabled in ("0", "1"):
        out = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            env={**os.environ, "NUMBA_DISABLE_JIT": disabled},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert out.returncode == 0, out.stderr
        numbers = list(map(float, out.stdout.split()))
        np.testing.assert_allclose(numbers, [expected[0], expected[1][0], *expected[1][1]], rtol=1e-13)


def test_with_compilation_disabled():
    program = """\
        import numpy as np
        from zygote_py import gradient, value_and_gradient
        def f(x, a, n=2):
            s = x
            for v in a:
                s = s * v + x ** n
            return s
        a = np.array([0.5, 2.0])
        print(value_and_gradient(f)(1.5, a))
        print(gradient(f, wrt="x")(1.5, a, n=2))
        print(gradient(lambda x: x * x)(3))
    """
    outs = []
    for disabled in ("0", "1"):
        out = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            env={**os.environ, "NUMBA_DISABLE_JIT": disabled},
            capture_output=True,
            text=True,
            check=False,
        )
        assert out.returncode == 0, out.stderr
        outs.append(re.sub(r"np\.float64\(([^)]*)\)", r"\1", out.stdout))
    assert outs[0] == outs[1]


def test_tracebacks_point_into_the_emitted_source():
    df = gradient(lambda x: x * x)
    df(2.0)
    assert "lambda" not in df.source(2.0).split("def ")[1].split("(")[0]  # the name is an identifier


def test_repr():
    assert "product" in repr(gradient(product))


def test_the_wrapped_function_is_found():
    assert inspect.unwrap(gradient(product)) is product
    assert inspect.signature(gradient(product)) == inspect.signature(product)
    assert gradient(product).primal is product


def test_partial_application_by_a_lambda():
    f = functools.partial(product, 3.0)
    assert gradient(lambda y: product(3.0, y))(2.0) == 3.0 if numba else f


def test_errors_can_be_pickled():
    with pytest.raises(zg.DifferentiationError) as caught:
        gradient(lambda x: (x, x))(1.0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
