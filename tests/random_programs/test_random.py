"""Random programs against the reference: some here, ten thousand with `-m long`; and the means themselves."""

from __future__ import annotations

import math
import random
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.checking.reference import central, complex_step, distance, precise
from tests.checking.trees import copied
from tests.modes import one_in
from tests.plain import plain
from tests.random_programs.callees import FEATURES, OPTIONAL, SIGNATURES, STEERING, STENCIL, VECTORIZE
from tests.random_programs.check import Kind, check, same_bits
from tests.random_programs.containers import CONTAINERS, Form
from tests.random_programs.entries import DICTS
from tests.random_programs.families import Families
from tests.random_programs.generator import Program, compiled, generate, load
from tests.random_programs.runner import features_of, program_of
from tests.random_programs.shrink import shrink

PLAIN, COMPILED = 36, 1
FINE = (Kind.OK, Kind.DISCARDED)


def dict_program(seed: int) -> Program:
    return program_of(seed, features=(DICTS,), always=True)


def container_program(seed: int) -> Program:
    return program_of(seed, features=(CONTAINERS,), always=True)


def run(seeds: range, compiled: bool) -> None:
    outcomes = [check(program_of(seed), compiled) for seed in seeds]
    bad = [f"seed {s}: {o.kind} {o.detail}" for s, o in zip(seeds, outcomes, strict=True) if o.kind not in FINE]
    assert not bad, "\n\n".join(bad[:5])
    assert sum(outcome.kind is Kind.DISCARDED for outcome in outcomes) <= len(outcomes) // 4


@pytest.mark.parametrize("first", one_in(3, range(1000, 1000 + PLAIN, 12)))
def test_programs_in_plain_python(first):
    run(range(first, first + 12), compiled=False)


@pytest.mark.parametrize("first", range(5000, 5000 + COMPILED))
def test_programs_compiled(first):
    run(range(first, first + 1), compiled=True)


@pytest.mark.parametrize("seed", one_in(3, [64, 2, 5]))
def test_second_derivatives_of_programs(seed):
    outcome = check(program_of(seed, "none" if seed % 2 == 0 else "read"), compiled=False, order=2)
    assert outcome.kind is Kind.OK, outcome.detail


@pytest.mark.parametrize("seed", [1, 6, 10])
def test_programs_that_take_derivatives(seed):
    outcome = check(program_of(seed, "none" if seed % 2 == 0 else "read", nested=True), compiled=False)
    assert outcome.kind is Kind.OK, outcome.detail


@pytest.mark.parametrize("pair", [("np.cos(", "1.01 * np.cos("), ("np.sin(", "1.01 * np.sin(")], ids=["cos", "sin"])
def test_a_wrong_second_derivative_is_found(monkeypatch, pair):
    text = "import math\n\nimport numpy as np\n\n\ndef f(x, y):\n    return 3.0 * math.sin(x) + x * y + math.cos(y)\n"
    program = Program(text, ((0.3, 0.8),))
    assert check(program, compiled=False, order=2).kind is Kind.OK
    monkeypatch.setattr("tests.random_programs.check.plain", lambda source: plain(source.replace(*pair)))
    outcome = check(program, compiled=False, order=2)
    assert outcome.kind is Kind.WRONG
    assert "forward over reverse is off by" in outcome.detail


def test_programs_with_derivatives_have_what_they_are_to_have():
    programs = [generate(random.Random(seed), True, functions=True, nested=True).text for seed in range(200)]
    text = "".join(program.partition("def g1(")[2] for program in programs)
    forms = "gradient(h|derivative(h|jvp(h|hvp(h|hessian(h|apply(gradient(h|in_turn((gradient(h|gradient(g1, wrt=0)"
    for form in (*forms.split("|"), "gradient(derivative(h", "derivative(lambda q: gradient(lambda r:"):
        assert form in text, form


@pytest.mark.parametrize("first", one_in(2, [1000, 1008]))
@pytest.mark.parametrize("drawn", one_in(2, [container_program, dict_program]))
def test_programs_with_dicts_or_arguments_in_containers(drawn, first):
    outcomes = [check(drawn(seed), compiled=False) for seed in range(first, first + 8)]
    assert [outcome.detail for outcome in outcomes if outcome.kind not in FINE] == []


@pytest.mark.parametrize(("drawn", "seed"), [(dict_program, 1000), (container_program, 1003)])
def test_a_program_with_dicts_or_arguments_in_containers_compiled(drawn, seed):
    outcome = check(drawn(seed), compiled=True)
    assert outcome.kind is Kind.OK, outcome.detail


def test_programs_have_dicts_only_if_asked():
    assert not any(DICTS in features_of(seed) for seed in range(200))
    with_others = [features_of(seed, (*FEATURES, DICTS)) for seed in range(200)]
    assert sum(DICTS in each for each in with_others) > 50
    assert [tuple(f for f in each if f != DICTS) for each in with_others] == [features_of(s) for s in range(200)]


def test_programs_with_dicts_have_what_they_are_to_have():
    text = "".join(dict_program(seed).text.partition("def f(")[2] for seed in range(300))
    forms = (
        " = {}|Dict.empty(types.int64, types.float64)|Dict.empty(PAIR, |types.float64[::1])|types.unicode_type, |.get("
        "|.pop(|.setdefault(|.popitem()|.clear()|.update(|.copy()|.items()|.values()|.keys()|sorted(list(|list(d"
        "|enumerate(d|powers(|halved(|blended(d|put(d| not in d| in d| for d|len(d|bool(d|del d|try:| is None"
    )
    for form in forms.split("|"):
        assert form in text, form
    for pattern in (
        r"(d\d+), (d\d+) = \(\2, \1\)",
        r"d\d+\[int\(",
        r"d\d+ = d\d+ if ",
        r"\{i\d+: .* for i\d+ in range",
    ):
        assert re.search(pattern, text), pattern


def test_programs_with_containers_have_what_they_are_to_have():
    forms = [Form(p.text, p.inputs[0], p.writes, p.held) for p in map(container_program, range(300))]
    kinds = {each.kind for form in forms for each in form.containers}
    assert kinds == {"list", "typed", "pairs", "named", "numbered", "record", "structured", "object", "fields"}
    text = "".join(form.text.partition("def f(")[2] for form in forms)
    for pattern in (
        r"p0_\['x'\]",
        r"p0_\.x",
        r"p0_\[1\]\.k",
        r"t_\[0\]",
        r"in p0_\.items\(\)",
        r"for \(?i_, r_\)? in",
        r"p1_\.a",
    ):
        assert re.search(pattern, text), pattern
    args = forms[0].given(container_program(0).inputs[0])
    assert all(map(same_bits, forms[0].taken(args), container_program(0).inputs[0]))


@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_programs_that_hypothesis_draws_and_shrinks(rng, arrays, writes):
    program = generate(rng, arrays, writes=writes)
    outcome = check(program, compiled=False)
    assert outcome.kind in FINE, (
        f"{outcome.kind} {outcome.detail}\n{program.text}\nf(*{program.inputs[outcome.input]!r})"
    )


@pytest.mark.long
def test_ten_thousand_programs():
    command = [sys.executable, "-m", "tests.random_programs", "--count", "10000", "--seed", "100000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]


@pytest.mark.long
def test_a_thousand_programs_with_dicts():
    command = [sys.executable, "-m", "tests.random_programs", "--features", "dicts", "--always", "--seed", "100000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]


# The generator


def test_a_seed_is_a_program():
    assert program_of(7).text == program_of(7).text
    assert program_of(7).text != program_of(9).text
    assert len({program_of(seed).text for seed in range(50)}) == 50


def test_programs_have_what_they_are_to_have():
    text = "".join(generate(random.Random(seed), True).text for seed in range(200))
    words = "for while break continue else elif return zip( enumerate( len( .shape[ and or not assert"
    for form in words.split():
        assert form in text, form
    text = "".join(generate(random.Random(seed), True).text for seed in range(200))
    for form in (" if ", " ** ", " // ", " % ", "np.", "math.", "max(", "[-1]", "(x, y)", " *= ", ", -1, -1)"):
        assert form in text, form


def test_programs_with_functions_have_what_they_are_to_have():
    programs = [generate(random.Random(seed), True, functions=True).text for seed in range(200)]
    text = "".join(program.partition("def g1(")[2] for program in programs)
    for form in ("= lambda q", "def h", "apply(h", "in_turn((h", "zg.checkpoint(h", "ruled(h", "[0](", "n - 1)"):
        assert form in text, form


def test_programs_that_write_have_what_they_are_to_have():
    text = "".join(generate(random.Random(seed), True, writes=True).text for seed in range(400))
    forms = "] =|] *=|] +=|[:] =|[:, |[::-1]|.T|np.empty(|np.zeros(|.copy()|_like(| @ |np.dot(|np.where(|np.sum(|[0]["
    for form in forms.split("|"):
        assert form in text, form
    swap = r"([abuw]\d*), ([abuw]\d*) = \(\2, \1\)"
    for form in (swap, r"for u\w+ in \w+:", r"(\w+)\[\1 <", r"h\w+ \+= ", r"h\w+\[.*\] \+= "):
        assert re.search(form, text), form


def test_each_feature_is_in_one_program_of_fifteen_at_least():
    drawn = [features_of(seed, FEATURES) for seed in range(20000)]
    for feature in FEATURES:
        assert sum(feature in each for each in drawn) > 20000 / 15
    assert [features_of(seed, (STEERING,)) for seed in range(50)] == [
        tuple(each for each in drawn[seed] if each == STEERING) for seed in range(50)
    ]
    assert STEERING in program_of(next(s for s in range(50) if STEERING in drawn[s])).features


def test_programs_that_are_steered_have_what_they_are_to_have():
    programs = [generate(random.Random(seed), True, writes=True, features=(STEERING,)).text for seed in range(300)]
    text = "".join(program.partition("def f(")[2] for program in programs)
    forms = (
        "[mk]|[mk] = |[mk] *= |mk[:] = |[ix]|[ix] = |[ix] += |ix[:] = (ix + |flip(mk, |exchange(ix, |np.where(mk, |"
        "np.bool_)|np.zeros(2, np.int64)|np.arange(|[1] += 1| = ~mk[|np.sum(q"
    )
    for form in forms.split("|"):
        assert form in text, form
    for pattern in (
        r"(k\d+|mk)\[[^=\n]+\] = not \1\[",
        r"(k\d+|mk)\[\1\] = ",
        r"k\d+ = (k\d+|mk)\[::?-?\d*\]",
        r"(p\d+|ix)\[(p\d+|ix)\[",
        r"range\([^\n]*(p\d+|ix|ct)\[",
        r"if [^\n]*(k\d+|mk)\[",
        r"(q\d+) = (\w+)\[(k\d+|mk)\]\n(?s:.*)\3\[.*\] = .*\n(?s:.*)np.sum\(\1\)",
    ):
        assert re.search(pattern, text), pattern


@pytest.mark.parametrize(
    ("feature", "forms"),
    [
        (SIGNATURES, '@numba.njit("f8(f8|@numba.njit(["f8(i8)", "f8(f8)"])|f8[:])|float(x)|i8)'),
        (
            VECTORIZE,
            "@numba.vectorize\n|@numba.vectorize(['f8(f8, f8)'])|np.sum(ve1(|elementwise(ve1_of_numbers, x, y)",
        ),
        (STENCIL, "@numba.stencil\n|cval=0.75|neighborhood=((|np.sum(st1(|out=w|a[-1, |for j in range("),
        (OPTIONAL, "q is None|q is not None|q=None|op1(x|, None)|= None\n| q)"),
    ],
)
def test_programs_with_decorated_callees_have_what_they_are_to_have(feature, forms):
    programs = [generate(random.Random(seed), True, writes=True, features=(feature,)) for seed in range(100)]
    text = "".join(program.stand_in + program.text for program in programs)
    for form in forms.split("|"):
        assert form in text, form
    for program in programs:
        assert program.features == (feature,)
        assert "@" not in program.ordinary.replace(" @ ", "").replace("@zg.adjoint", "")


@pytest.mark.parametrize("seed", one_in(2, range(2)))
@pytest.mark.parametrize("feature", [SIGNATURES, VECTORIZE, STENCIL])
def test_what_stands_in_for_a_decorated_callee_computes_what_numba_computes(feature, seed):
    program = generate(random.Random(seed), True, writes=seed % 2 == 0, features=(feature,))
    found = compiled(program.text)(*copied(program.inputs[0]))
    assert load(program.ordinary)(*copied(program.inputs[0])) == pytest.approx(float(found), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("target", "text", "drawn"),
    [
        ("a[:]", "a[::-1]", "a[::-1].copy()"),
        ("a[1:]", "u", "u.copy()"),
        ("m[:, 0]", "m[0]", "m[0].copy()"),
        ("m[:, :]", "m.T", "m.T.copy()"),
        ("a[:]", "a[:]", "a[:]"),
        ("m[0]", "m[k]", "m[k]"),
        ("a[:]", "b[::-1]", "b[::-1]"),
        ("a[:]", "a[0]", "a[0]"),
        ("a[:]", "np.sin(a[::-1])", "np.sin(a[::-1])"),
    ],
)
def test_what_is_updated_in_place_is_not_read_through_another_view(target, text, drawn):
    families, shapes = Families(), {"a": (4,), "b": (4,), "m": (2, 2), "u": (3,)}
    families.join_with_all_in("u", "a[:-1] if x > 0.0 else b[1:]", {"a": (4,)})
    assert families.apart(target, text, shapes) == drawn


# The checker finds what is wrong


def test_a_wrong_gradient_is_found_and_made_small(monkeypatch):
    import zygote_py

    class Wrong:
        def __init__(self, function):
            self.right = real(function)

        def source(self, *args):
            return self.right.source(*args).replace("np.cos(", "1.01 * np.cos(")

    real = zygote_py.value_and_gradient
    monkeypatch.setattr(zygote_py, "value_and_gradient", Wrong)
    body = "r = x\n    for i in range(n):\n        r = r * x + math.sin(r)\n    return r + n\n"
    text = f"import math\ndef f(x, n):\n    {body}"
    program = Program(text, ((0.7, 3), (0.3, 2)))
    assert check(program, compiled=False).kind is Kind.WRONG
    small = shrink(program, lambda candidate: check(candidate, False).kind is Kind.WRONG, seconds=20)
    assert "math.sin" in small.text
    assert len(small.text.splitlines()) <= 10
    assert len(small.inputs) == 1


def test_a_program_that_fails_by_itself_is_invalid():
    assert check(Program("def f(x):\n    return undefined\n", ((1.0,),)), False).kind is Kind.INVALID
    assert check(Program("def f(x):\n    while True:\n        pass\n", ((1.0,),)), False).kind is Kind.INVALID


def test_a_kink_is_discarded():
    assert check(Program("def f(x):\n    return abs(x)\n", ((0.0,),)), False).kind is Kind.DISCARDED


# The reference


def test_references_agree():
    def f(x, n, a):
        s = x
        for i in range(n):
            s = math.sin(s) * a[i] + x**i / (1.0 + math.exp(-s))
        return s

    args = (0.7, 3, np.array([0.5, -1.5, 2.0]))
    exact, differences = precise(f, *args), central(f, *args)
    assert exact.doubt is None
    assert differences.doubt is None
    assert distance(differences.gradients, exact.gradients) < 1e-9
    assert exact.value == pytest.approx(f(*args), rel=1e-14)


def test_reference_of_known_derivatives():
    assert precise(lambda x: math.sin(x) * math.exp(x), 0.5).gradients == pytest.approx(
        (math.exp(0.5) * (math.sin(0.5) + math.cos(0.5)),), rel=1e-15
    )
    assert complex_step(lambda x: np.sin(x) * np.exp(x), 0.5) == pytest.approx(
        math.exp(0.5) * (math.sin(0.5) + math.cos(0.5)), rel=1e-15
    )
    assert precise(lambda x, n: x**n, 3.0, 2).gradients == (6.0, None)
    assert precise(lambda x, n: x * n, 3.0, 2, wrt=(1,)).gradients == (None, 3.0)
    assert precise(lambda x: round(x) * x + x // 0.5, 1.3).gradients == (1.0,)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (abs, 0.0),
        (lambda x: max(x, 1.0), 1.0),
        (lambda x: x if x > 1.0 + 1e-12 else 2.0 * x, 1.0),
        (lambda x: x * math.floor(x), 2.0),
        (lambda x: x * round(x), 0.5),
        (lambda x: math.inf * x, 1.0),
    ],
)
def test_reference_doubts_kinks_and_jumps(f, x):
    assert precise(lambda x: f(x), x).doubt


def test_distance():
    assert distance((1.0, None), (1.0, None)) == 0.0
    assert distance((1.0, 0.0), (1.0, None)) == math.inf
    assert distance((np.zeros(2),), (np.zeros(3),)) == math.inf
    assert distance((math.nan,), (1.0,)) == math.inf
    assert distance((1.0 + 1e-9, 1e-9), (1.0, 0.0)) == pytest.approx(1e-9)


def test_a_program_can_be_loaded():
    assert load("def f(x):\n    return x\n")(2.0) == 2.0
