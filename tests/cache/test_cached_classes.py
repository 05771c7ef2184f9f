"""Classes of the main program and of notebooks in the cache: the objects that are returned are of the present class."""

from __future__ import annotations

import pytest

from tests.cache.test_cache import COMPILED, READ, Process, expect
from tests.modes import one_in


@pytest.fixture
def process(tmp_path):
    return Process(tmp_path)


CLASSES = """
    import dataclasses
    from dataclasses import dataclass
    from typing import NamedTuple
    class Scaled:
        def scaled(self, x):
            return 2.0 * x
    @dataclass(frozen=True)
    class Layer(Scaled):
        w: np.ndarray
        b: float
        rate: float = 2.0
        def __call__(self, x):
            return np.sum(self.w * x) + self.b
        @property
        def twice(self):
            return self.b * 2.0
    class Pair(NamedTuple):
        u: float
        v: float
        k: float = 2.0
    class Outer:
        @dataclass(frozen=True)
        class Inner:
            z: float
    def f(layer, pair, inner, x):
        made = Layer(layer.w, x)
        return layer(x) + made.rate * (pair.u + pair.v) * Pair(x, x).k + made.scaled(x) * layer.twice * inner.z
    def results(found):
        layer, pair, inner, x = found
        assert type(layer) is Layer and type(pair) is Pair and type(inner) is Outer.Inner
        return [*(np.asarray(each).tolist() for each in (*dataclasses.astuple(layer), *pair, inner.z, x))]
    df = gradient(f)
    arguments = Layer(np.ones(2), 3.0), Pair(1.0, 2.0), Outer.Inner(2.0), 1.0
    show(df, *results(df(*arguments)))
"""
# f = w . x + b + 4 (u + v) + 8 b x z / 2
FOUND = [[1.0, 1.0], 9.0, 0.0, 4.0, 4.0, 0.0, 12.0, 26.0]
EDITS = {
    "rate: float = 2.0": ("rate: float = 3.0", {3: 6.0, 4: 6.0}),
    "k: float = 2.0": ("k: float = 3.0", {3: 6.0, 4: 6.0}),
    "self.w * x": ("self.w * x * 2.0", {0: [2.0, 2.0], 7: 28.0}),
    "self.b * 2.0": ("self.b * 3.0", {1: 13.0, 6: 18.0, 7: 38.0}),
    "return 2.0 * x": ("return 4.0 * x", {1: 17.0, 6: 24.0, 7: 50.0}),
    "z: float": ("z: int", {}),  # which nothing depends on: annotations are not looked at
}


def test_a_second_process_has_the_classes_of_the_main_program(process):
    for how in (COMPILED, READ):
        found = process.run(CLASSES)
        assert found[:2] == how
        assert found[2] == FOUND


@pytest.mark.parametrize("old", one_in(2, EDITS))
def test_a_class_of_the_main_program_that_has_changed(process, old):
    new, changes = EDITS[old]
    assert CLASSES.count(old) == 1
    assert process.run(CLASSES)[2] == FOUND
    expected = [changes.get(number, each) for number, each in enumerate(FOUND)]
    for _ in range(2):
        assert process.run(CLASSES.replace(old, new))[2] == expected
    assert process.run(CLASSES)[::2] == (False, FOUND)


def test_fields_in_another_order(process):
    program = """
        from typing import NamedTuple
        class Pair(NamedTuple):
            u: float
            v: float
        df = gradient(lambda p: 2.0 * p.u + p.v)
        found = df(Pair(1.0, 1.0))
        assert type(found) is Pair
        show(df, found.u, found.v)
    """
    for _ in range(2):
        assert process.run(program)[2] == [2.0, 1.0]
    other = program.replace("u: float\n            v: float", "v: float\n            u: float")
    assert other != program
    for how in (COMPILED, READ):
        expect(process.run(other), how, [2.0, 1.0])


NOTEBOOK = """
    from zygote_py import pullback
    def cell(number, text):
        exec(compile(text, f"/tmp/ipykernel_7/{number}.py", "exec"), globals())
    PAIR = "from typing import NamedTuple\\nclass Pair(NamedTuple):\\n    u: float\\n    v: float\\n"
    WORDS = "from dataclasses import dataclass\\n@dataclass(frozen=True)\\nclass Pair:\\n    u: float\\n    v: float\\n"
    F = "def f(p, x):\\n    return p.u * x + p.v * 3.0\\n"
"""


def test_a_cell_of_a_notebook_that_runs_again(process):
    """It makes another class of the same name, as it was or not; there may be objects of both."""
    program = (
        NOTEBOOK
        + """
    cell(1, TEXT)
    cell(2, F)
    df = gradient(f)
    old = Pair(1.0, 2.0)
    results = []
    for change in (("", ""), ("", ""), ("v: float", "v: float\\n    w: float = 1.0")):
        cell(1, TEXT.replace(*change) if change[0] else TEXT)
        made = Pair(1.0, 2.0)
        found, slope = df(made, 2.0)
        assert type(found) is type(made) is Pair
        before, _ = df(old, 2.0)
        assert type(before) is type(old) is not Pair
        results += [found.u, found.v, slope, before.u]
    assert found.w == 0.0
    cell(2, F.replace("3.0", "4.0"))
    results.append(gradient(f)(Pair(1.0, 2.0), 2.0)[0].v)
    show(df, *results)
    """.replace("TEXT", "WORDS")
    )
    expected = [2.0, 3.0, 1.0, 2.0] * 3 + [4.0]
    for _ in range(2):
        assert process.run(program)[2] == expected


def test_a_class_that_is_defined_again_after_its_code_was_read(process):
    """A derivative that returns objects of a class belongs to the class that existed when it was compiled or read."""
    program = (
        NOTEBOOK
        + """
    cell(1, WORDS)
    df = gradient(lambda p: p.u * p.v)
    old = Pair(1.0, 2.0)
    df.compile(old)
    cell(1, WORDS)
    found = df(old)
    assert type(found) is type(old) is not Pair
    again = df(Pair(3.0, 4.0))
    assert type(again) is Pair
    show(df, found.u, again.u)
    """
    )
    for _ in range(2):
        assert process.run(program)[2] == [2.0, 4.0]


def test_pullbacks_with_classes_of_the_main_program(process):
    program = """
        from typing import NamedTuple
        from zygote_py import pullback
        class Pair(NamedTuple):
            u: float
            v: float
        def f(x):
            return Pair(x, 2.0 * x * x)
        value, back = pullback(f, 3.0)
        assert type(value) is Pair
        stages = "zygote_py.compiler.pipeline" in sys.modules
        print(json.dumps([stages, 0, [*value, *back(Pair(1.0, 1.0))]]))
    """
    for stages in (True, False):
        assert process.run(program)[::2] == (stages, [3.0, 18.0, 13.0])
    assert process.run(program.replace("2.0 * x * x", "3.0 * x * x"))[::2] == (True, [3.0, 27.0, 19.0])


def test_classes_of_functions_are_not_kept(process):
    program = """
        from typing import NamedTuple
        def made(scale):
            class Pair(NamedTuple):
                u: float
                v: float
                k: float = scale
            return Pair
        results = []
        for k in (2.0, 3.0):
            Pair = made(k)
            df = gradient(lambda p: p.u * Pair(1.0, 1.0).k)
            found = df(Pair(1.0, 2.0))
            assert type(found) is Pair
            results.append(found.u)
        show(df, *results)
    """
    for _ in range(2):
        expect(process.run(program), COMPILED, [2.0, 3.0])


def test_a_named_tuple_of_a_notebook_that_is_returned(process):
    program = (
        NOTEBOOK
        + """
    cell(1, PAIR)
    def g(x):
        return Pair(x, 2.0 * x)
    results = []
    for _ in range(3):
        value, back = pullback(g, 3.0)
        assert type(value) is Pair
        results += back(Pair(1.0, 1.0))
        cell(1, PAIR)
    print(json.dumps([None, 0, results]))
    """
    )
    for _ in range(2):
        assert process.run(program)[2] == [3.0, 3.0, 3.0]
