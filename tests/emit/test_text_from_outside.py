"""Source lines, names of files and names of functions go into the emitted text, and never become code there."""

from __future__ import annotations

import ast
import itertools
import linecache
import os
import pickle

import numpy as np
import pytest

from tests.plain import plain
from zygote_py import gradient, pullback
from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.ir import Loc, identifier, is_identifier, one_line, parse
from zygote_py.ir.text.printer import text

_numbers = itertools.count()
LINES = ["def f(x, a):", "    y = np.sum(x * x)", "    if y < a: raise ValueError('no')", "    return y * a"]
BREAKS = [*"\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\0\ud800\udcff\u202e\x1b"]
FILES = [*(f"a{each}import os; boom{each}b.py" for each in BREAKS), "a\\b.py", "a\\", '\'""".py', 'b"""', "c.py#"]


def _renamed(code, **words):
    inner = (_renamed(each, **words) if hasattr(each, "co_code") else each for each in code.co_consts)
    return code.replace(co_consts=tuple(inner), **words)


def made(lines, filename=None, shown=None, name="f"):
    """A function of these lines, in a file of any name, which `linecache` shows as others."""
    filename = filename or f"<outside {next(_numbers)}>"
    shown = "\n".join(shown or lines)
    linecache.cache[filename] = (len(shown), None, [f"{line}\n" for line in shown.split("\n")], filename)
    namespace = {"np": np}
    exec(_renamed(compile("\n".join(lines), "<text>", "exec"), co_filename=filename), namespace)
    return namespace[name]


def shape(source: str) -> str:
    """A text without its comments; that it can be written to a file, and has the lines that editors see."""
    source.encode()
    assert source.split("\n")[:-1] == source.splitlines()
    return ast.dump(ast.parse(source))


X = np.array([1.0, 2.0])


def check(f, clean):
    source = gradient(f).source(X, 3.0)
    assert shape(source) == clean
    run = plain(source)
    found = run(X, 3.0)
    np.testing.assert_allclose(found[0], 6.0 * X)
    assert found[1] == 5.0
    with pytest.raises(ValueError, match="no"):
        run(X, 10.0)
    return source


@pytest.fixture(scope="module")
def clean():
    return shape(gradient(made(LINES)).source(X, 3.0))


@pytest.mark.parametrize("mark", BREAKS[:1] + BREAKS[2:], ids=ascii)
def test_source_lines(mark, clean):
    shown = [f"{line}  # {mark}import os; boom{mark}    boom" for line in LINES]
    source = check(made(LINES, shown=shown), clean)
    assert f"{one_line(mark)}import os; boom" in source


def test_a_tab_stays(clean):
    assert "\t# more" in check(made(LINES, shown=[f"{line}\t# more" for line in LINES]), clean)


@pytest.mark.parametrize("file", FILES, ids=ascii)
def test_names_of_files(file, clean):
    f = made(LINES, file)
    check(f, clean)
    assert f.__code__.co_filename == file
    value, _ = (each.splitlines() for each in (gradient(f).primal_ir(X, 3.0), gradient(f).adjoint_ir(X, 3.0)))
    assert value[0].endswith(f"# {one_line(os.path.basename(file))}:1")
    opens = gradient(made(["def f(x):", "    return open(x)"], file))
    for call in (opens, opens.source):
        with pytest.raises(DifferentiationError) as caught:
            call(2.0)
        assert str(caught.value).splitlines()[0] == f"{one_line(file)}:2: `open` is not supported"
        assert caught.value.file == file


def test_functions_of_any_number_of_arguments():
    for file in ("a\0b.py", "\ud800.py", "a\nb.py"):
        f = made(["def f(*x):", "    return x[0] * x[1]"], file)
        assert plain(gradient(f).source(2.0, 3.0))(2.0, 3.0) == (3.0, 2.0)
        inner = made(["def g(x):", "    return (lambda *y: y[0] * y[1])(x, x)"], file, name="g")
        assert plain(gradient(inner).source(2.0))(2.0) == 4.0


def test_compiled():
    """Numba shows the emitted text in its own messages, and knows it by the name of its file."""
    file = "a\rimport os; boom\n\ud800\u2028.py"
    f = made(LINES, file, [f"{line}\r    raise SystemExit" for line in LINES])
    dx, da = gradient(f)(X, 3.0)
    np.testing.assert_allclose(dx, 6.0 * X)
    assert da == 5.0
    value, back = pullback(f, X, 3.0)
    assert value == 15.0
    np.testing.assert_allclose(back(2.0)[0], 12.0 * X)


@pytest.mark.parametrize(
    "name", ["class", "None", "a b", "x(): pass\nimport os\ndef f", "\ud800", "", "ﬁ", "np", "njit", "é", "<lambda>"]
)
def test_names_of_functions(name, clean):
    f = made(LINES)
    f.__name__ = f.__qualname__ = name
    source = gradient(f).source(X, 3.0)
    source.encode()
    body = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in body] == [f"{identifier(name, 'function')}_gradient"]
    assert plain(source)(X, 3.0)[1] == 5.0
    g = made(["def g(x, a):", "    return f(x, a) if a > 1 else g(x, a * a)"], name="g")  # a routine
    g.__globals__["f"] = f
    g.__name__ = name
    assert plain(gradient(g).source(X, 3.0))(X, 3.0)[1] == 5.0
    starred = made(["def f(*x):", "    return x[0] * x[1]"])
    starred.__name__ = name
    assert plain(gradient(starred).source(2.0, 3.0))(2.0, 3.0) == (3.0, 2.0)


@pytest.mark.parametrize("name", ["a b", "class", "None", "x):\n    import os\n#", "\ud800", "ﬁ"])
def test_names_of_parameters(name):
    f = made(["def f(x):", "    return x * x"])
    f.__code__ = f.__code__.replace(co_varnames=(name,))
    with pytest.raises(DifferentiationError, match=r"a parameter is called .* which is not a name"):
        gradient(f).source(2.0)
    g = made(["def g(x):", "    return f(x)"], name="g")
    g.__globals__["f"] = f
    with pytest.raises(DifferentiationError, match=r"not a (name|valid parameter name)"):
        gradient(g).source(2.0)
    f = made(["def f(x):", "    y = x * x", "    return y * y"])
    f.__code__ = f.__code__.replace(co_varnames=("x", name))
    assert plain(gradient(f).source(2.0))(2.0) == 32.0


@pytest.mark.parametrize("message", ["a\nb", "\r", '"""', "\\", "\ud800", "\0", "\u2028", "{x}", "%s", "'"])
def test_texts(message):
    lines = ["def f(x, m=MESSAGE):", "    if x < 0: raise ValueError(MESSAGE)", "    return x * x"]
    f = made([line.replace("MESSAGE", repr(message)) for line in lines])
    source = gradient(f).source(2.0)
    shape(source)
    run = plain(source)
    assert run(2.0) == (4.0, None)
    with pytest.raises(ValueError) as caught:
        run(-1.0)
    assert caught.value.args == (message,)


class Written(str):
    def __repr__(self):
        return "0):\n    import os\n#"


class Counted(int):
    __repr__ = Written.__repr__


def test_defaults_that_are_written_in_another_way():
    for default in (Written("a"), Counted(3)):

        def f(x, a=default):
            return x * x

        shape(gradient(f).source(2.0))
        assert gradient(f)(2.0) == (4.0, None)


def test_lines_of_errors():
    error = refuse("no", Loc("a\nb.py", 3))
    error.source_line, error.column = "\ty\r = f(x)", 5
    assert str(error).split("\n") == ["a\\nb.py:3: no", "    y\\r = f(x)", "    " + " " * 4 + "^"]
    assert pickle.loads(pickle.dumps(error)).file == "a\nb.py"


def test_the_text_of_the_ir():
    (f,) = parse("primal f(%x: f64) -> f64\nb0:\n  return %x")
    f.loc = Loc("/a/b\nc.py", 3)
    assert text(f).splitlines()[0].endswith("# b\\nc.py:3")
    assert [text(each) for each in parse(text(f))] == [text(f)]


def test_what_is_a_name():
    assert all(map(is_identifier, ["x", "é", "_1"]))
    assert not any(map(is_identifier, ["", "1", "a b", "class", "None", "ﬁ", "\ud800", "<lambda>"]))
