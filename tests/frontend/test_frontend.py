"""The IR that the front end makes, as golden text beside the source; and what it tells besides the IR."""

from __future__ import annotations

import linecache
import textwrap
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit, types

from tests.counts import calls
from zygote_py import numba_adapter
from zygote_py.adjoints import DifferentiationError
from zygote_py.frontend import lower
from zygote_py.ir import Branch, Instr, Return, counted, loop_nest, verify
from zygote_py.ir.text.printer import text

F8, I8 = types.float64, types.int64
VECTOR = types.float64[::1]

SOURCES = {
    "pow": (
        """
        def pow(x, n):
            r = 1
            while n > 0:
                n -= 1
                r *= x
            return r
        """,
        (F8, I8),
    ),
    "for_loop": (
        """
        def total(x, n):
            s = 0.0
            for i in range(1, n):
                if i == 3:
                    continue
                s += x[i] * i
            return s
        """,
        (VECTOR, I8),
    ),
    "while_and_or": (
        """
        def search(x, n):
            i = 0
            while (x < 0.5 or i < n) and i != 7:
                x = x * 1.5
                if x > 3.0:
                    continue
                i += 1
            return x
        """,
        (F8, I8),
    ),
    "zip_enumerate": (
        """
        def dot(x, y):
            s = 0.0
            for i, (a, b) in enumerate(zip(x, y), 1):
                s += i * a * b
            return s
        """,
        (VECTOR, VECTOR),
    ),
    "break_else_raise": (
        """
        def first(x, limit):
            for v in x:
                if v > limit:
                    break
            else:
                raise ValueError("none", limit)
            return v
        """,
        (VECTOR, F8),
    ),
    "tuples": (
        """
        def step(state, h):
            (x, v), t = state
            for _ in range(3):
                x, v = x + h * v, v - h * x
            return (x, v), t + 3 * h
        """,
        (types.Tuple((types.UniTuple(F8, 2), F8)), F8),
    ),
    "casts": (
        """
        def mixed(x, n, flag):
            r = 2
            if flag and n:
                r = n * x
            return r + n ** 2 + x ** 2 + max(x, n, 3) + (x > n)
        """,
        (F8, I8, types.boolean),
    ),
    "inlined": (
        """
        SCALE = 2.0

        def clip(a, lo=0.0, hi=1.0):
            if a < lo:
                return lo
            if a > hi:
                return hi
            return a

        def square(a):
            return a * a

        def f(x):
            return clip(square(x), hi=SCALE) + square(3)
        """,
        (F8,),
    ),
    "unbound": (
        """
        def last(x, n):
            for i in range(n):
                y = x * i
            return y + i
        """,
        (F8, I8),
    ),
    "strings": (
        """
        def choose(x, mode):
            if mode == "half":
                return x / 2
            elif mode in ("twice", "double"):
                return x * 2
            return x
        """,
        (F8, types.unicode_type),
    ),
}


def load(source: str, file: str) -> dict[str, Any]:
    """Run the source of a module as if it stood in `file`."""
    source = textwrap.dedent(source).lstrip("\n")
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": file}
    exec(compile(source, file, "exec"), namespace)
    return namespace


def last_function(source: str, file: str) -> Callable[..., Any]:
    return list(load(source, file).values())[-1]


@pytest.mark.parametrize("name", SOURCES)
def test_golden(name, golden):
    source, argument_types = SOURCES[name]
    lowered = lower(last_function(source, f"{name}.py"), argument_types)
    verify(lowered.function)
    every = {value for value in lowered.function.values() if isinstance(value, Instr)}
    golden(f"frontend_{name}", textwrap.dedent(source).strip() + "\n\n" + text(lowered.function, every))


def test_pow_with_an_int_or_a_float_to_start_with():
    source, argument_types = SOURCES["pow"]
    one = lower(last_function(source, "pow.py"), argument_types)
    other = lower(last_function(source.replace("r = 1\n", "r = 1.0\n"), "pow.py"), argument_types)
    assert text(one.function) == text(other.function)


# What besides the IR


def test_captured_floats_and_arrays_are_read_at_each_call():
    module = load(
        """
        import math

        import numpy as np

        RATE = 0.5
        COUNT = 3
        TABLE = np.ones(2)

        def f(x):
            return x * RATE + TABLE[0] * COUNT + math.pi
        """,
        "captured.py",
    )
    lowered = lower(module["f"], (F8,))
    assert lowered.argument_count == 1
    assert [param.hint for param in lowered.function.params] == ["x", "RATE", "TABLE"]
    assert [capture.name for capture in lowered.hidden] == ["RATE", "TABLE"]
    assert [capture.kind for capture in lowered.hidden] == ["global", "global"]
    module["RATE"] = 0.75
    assert lowered.hidden[0].read() == 0.75
    fixed = {capture.name: capture for capture in lowered.frozen if capture.kind == "global"}
    assert {name: capture.value for name, capture in fixed.items()} == {"COUNT": 3, "math": module["math"]}
    module["COUNT"] = 4
    assert fixed["COUNT"].read() == 4
    assert fixed["COUNT"].value == 3


def test_captured_variables_of_a_closure():
    rate, count = 0.5, 2

    def f(x):
        return x * rate + count

    lowered = lower(f, (F8,))
    assert [(capture.name, capture.kind) for capture in lowered.hidden] == [("rate", "freevar")]
    rate = 0.25
    assert lowered.hidden[0].read() == 0.25
    constants = [(capture.name, capture.kind) for capture in lowered.frozen if capture.kind != "function"]
    assert constants == [("count", "freevar")]


def test_callees_capture_too_and_names_do_not_collide():
    first = load("K = 1.0\ndef g(x):\n    return x * K\n", "first.py")
    second = load("K = 2.0\ndef f(x):\n    return g(x) + K + g(K)\n", "second.py")
    second["g"] = first["g"]
    lowered = lower(second["f"], (F8,))
    assert [capture.read() for capture in lowered.hidden] == [2.0, 1.0]
    names = [capture.name for capture in lowered.hidden]
    assert len(set(names)) == 2
    assert all(name.isidentifier() for name in names)


def test_floats_in_modules_are_captured():
    import types as python_types

    settings = python_types.ModuleType("settings")
    settings.RATE = 0.5
    module = load("def f(x):\n    return x * settings.RATE\n", "uses.py")
    module["settings"] = settings
    lowered = lower(module["f"], (F8,))
    assert [capture.name for capture in lowered.hidden] == ["settings_RATE"]
    settings.RATE = 2.0
    assert lowered.hidden[0].read() == 2.0


def test_options_come_along():
    assert lower(lambda x: x, (F8,), {"fastmath": True}).function.options == {"fastmath": True}
    options = numba_adapter.options_of(njit(fastmath=True, error_model="numpy")(lambda x: x))
    assert (options["fastmath"], options["error_model"]) == (True, "numpy")
    assert "nopython" not in options


def test_defaults_fill_what_is_not_given():
    lowered = lower(lambda x, y=2.0, n=3: x * y + n, (F8,))
    assert [param.type for param in lowered.function.params] == [F8, F8, I8]
    assert lowered.argument_count == 3


def test_result_type():
    assert lower(lambda x, n: (x, (n, x > n)), (F8, I8)).result_type == types.Tuple(
        (F8, types.Tuple((I8, types.boolean)))
    )
    assert lower(lambda x: None, (F8,)).result_type == types.none


def test_a_function_of_the_repl():
    namespace: dict[str, Any] = {}
    exec("def f(x):\n    return x * x", namespace)
    lowered = lower(namespace["f"], (F8,))
    assert text(lowered.function).startswith("primal f(%x: f64) -> f64")


# Shapes that later stages rely on


@pytest.mark.parametrize(
    "header",
    [
        "for i in range(n):",
        "for i in range(2, n, 3):",
        "for i in range(n, 0, -1):",
        "for i in range(0, n, n + 1):",
        "for i, v in enumerate(x):",
        "for v, i in zip(x, range(n)):",
        "for i in (1, 2, 3):",
    ],
)
def test_for_loops_count(header):
    source = (
        f"def f(x, n):\n    s = 0.0\n    {header}\n        if i == 5:\n            continue\n        s += x[0] * i\n"
    )
    function = lower(last_function(source + "    return s\n", "counts.py"), (VECTOR, I8)).function
    (loop,) = loop_nest(function).loops
    assert counted(loop, function) is not None
    assert len(loop.latches) == 1


@pytest.mark.parametrize("test", ["n > 0", "n > 0 and x < 9.0", "n > 0 or x < 9.0", "not (n > 3 and x > 1.0) or n > 7"])
@pytest.mark.parametrize("body", ["x += n", "if x > 3.0:\n            n -= 2\n            continue\n        x += n"])
def test_while_loops_test_in_their_header(test, body):
    source = f"def f(x, n):\n    while {test}:\n        n -= 1\n        {body}\n    return x\n"
    function = lower(last_function(source, "tests.py"), (F8, I8)).function
    (loop,) = loop_nest(function).loops
    assert isinstance(loop.header.terminator, Branch)
    tests = [instr for block in function.blocks for instr in block.instrs if instr.hint == "c"]
    assert len(tests) == test.count(">") + test.count("<") + body.count(">"), text(function)


def test_the_first_test_of_a_loop_is_kept_where_its_outcome_is_known():
    def f(x):
        r = 1.0
        while r > 1e-9:
            r *= x
        return r

    (loop,) = loop_nest(lower(f, (F8,)).function).loops
    assert loop.exits[0][0] is loop.header


def test_names_of_inlined_closures_are_those_of_the_source():
    def f(x):
        def inner(y):
            k = y * 2.0
            return k * k

        return inner(x) + inner(3.0)

    assert text(lower(f, (F8,)).function) == text(lower(f, (F8,)).function)
    assert {value.hint for value in lower(f, (F8,)).function.values()} == {"x", "k", ""}


def test_a_function_passed_as_an_argument():
    square = njit(lambda a: a * a)
    lowered = lower(lambda f, x: f(x) + 1.0, (numba_adapter.typeof(square), F8))
    assert [param.hint for param in lowered.function.params] == ["f", "x"]
    (block,) = lowered.function.blocks
    assert len(block.instrs) == 2
    assert isinstance(block.terminator, Return)


# The process


def test_a_refusal_leaves_nothing_behind():
    module = load("def g(x):\n    return x, len({x})\ndef f(x):\n    return g(x)[0]\n", "refused.py")
    for _ in range(2):
        with pytest.raises(DifferentiationError, match="a set"):
            lower(module["f"], (F8,))
    module["g"] = lambda x: (x, 1.0)
    assert text(lower(module["f"], (F8,)).function).count("return %x") == 1


def test_threads():
    def f(x, n):
        for i in range(n):
            x = x * i + 1.0
        return x

    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(text(lower(f, (F8, I8)).function))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 4
    assert len(set(texts)) == 1


def test_ir_is_linear_in_the_source():
    def size(count: int) -> int:
        body = "".join(
            f"    for i in range(n):\n        x += i * {k}\n    while x > {k}.5:\n        x -= 1\n"
            for k in range(count)
        )
        source = f"def f(x, n):\n{body}    return x\n"
        function = lower(last_function(source, f"linear{count}.py"), (F8, I8)).function
        return sum(len(block.phis) + len(block.instrs) + 1 for block in function.blocks)

    one = size(2) - size(1)
    assert size(20) == size(1) + 19 * one


def test_lowering_does_less_than_numba_compiling():
    def f(x, y, n):
        s = 0.0
        for i in range(n):
            a = x * y + i
            if a > s:
                s += np.sin(a) * y
            else:
                s -= x / (1 + a * a)
            x *= 0.5
        return s * x

    lower(f, (F8, F8, I8))
    assert calls(lambda: lower(f, (F8, F8, I8))) < calls(lambda: njit(f).compile((F8, F8, I8)))


# The adapter


def test_a_dispatcher_that_compiles_what_it_is_told_to():
    asked = []

    def implement(argument_types):
        asked.append(argument_types)
        factor = 2.0 if argument_types[0] == F8 else 3.0
        return lambda x, k=1.0: x * factor + k

    def stub(x, k=1.0):
        pass

    dispatcher = numba_adapter.make_dispatcher(stub, implement, {"fastmath": True})
    assert dispatcher(1.5) == 4.0
    assert dispatcher(2, 0.5) == 6.5
    assert isinstance(asked[0][1], types.Omitted)
    assert njit(lambda x: dispatcher(x, 0.0) + 1.0)(1.0) == 3.0
    assert "define" in numba_adapter.llvm_text(dispatcher, dispatcher.signatures[0])
    assert "\n}" in numba_adapter.llvm_text(dispatcher, dispatcher.signatures[1])
    assert "ret" in numba_adapter.asm_text(dispatcher, dispatcher.signatures[1])


def test_native_text_is_that_of_the_function_alone():
    compiled = njit(lambda x: 5.0)
    compiled(1.0)
    llvm = numba_adapter.llvm_text(compiled, (F8,))
    assert llvm.count("define ") == 1
    assert "5.0" in llvm
    assert "load" not in llvm
    assert "PyArg" not in llvm


def test_objects_that_are_called_as_dispatchers():
    class Doubler:
        def __init__(self):
            self.compiled = njit(lambda x: 2.0 * x)

    numba_adapter.register_as_dispatcher(Doubler, lambda doubler: doubler.compiled)
    doubler = Doubler()
    assert njit(lambda x: doubler(x) + 1.0)(3.0) == 7.0


def test_typeof():
    assert numba_adapter.typeof(1.0) == F8
    assert numba_adapter.typeof(np.zeros(3)) == VECTOR
    with pytest.raises(DifferentiationError, match="`object`") as caught:
        numba_adapter.typeof(object())
    assert "NamedTuple" in caught.value.hint


def test_what_a_dispatcher_is():
    def f(x):
        return x

    assert not numba_adapter.is_dispatcher(f)
    assert numba_adapter.is_dispatcher(njit(f))
    assert numba_adapter.py_func_of(njit(f)) is f
    assert numba_adapter.py_func_of(f) is f
    assert numba_adapter.options_of(f) == {}
