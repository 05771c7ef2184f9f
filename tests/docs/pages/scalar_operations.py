"""The page docs/scalar-operations.md, the table of all scalar rules; `__main__` writes it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import types

from zygote_py.adjoints import REFUSED, ROWS, STRUCTURAL, UNKNOWN, Rule, rule_for
from zygote_py.adjoints.rules.formulas.rule import Op
from zygote_py.adjoints.rules.formulas.terms import HELPERS
from zygote_py.adjoints.rules.scalar import scipy_special
from zygote_py.ir import Instr, Param, is_helper, ops

HEAD = """\
# The scalar operations that have a derivative

Generated from the rules: `python -m tests.docs.pages docs`. Each row gives what the operation adds to the
adjoint of each argument; `y` is its result, `dy` the adjoint of the result, functions are NumPy's. A power by a
constant is worked out (`x**3` gives `3 * (x * x) * dy`), and so are an inverse (`1 / b` gives `-((dy * y) * y)`) and
the product of a number and its root (`x * sqrt(x)` gives `(1.5 * dy) * sqrt(x)`).
[kinks.md](kinks.md) says what all this is at kinks, ties and poles, [complex.md](complex.md) what it is for complex
numbers.

| operation | adjoints |
|---|---|
"""
FLAT = """
Without derivative by nature (zero wherever it exists, or not a number at all):
"""
OF_SCIPY = """
## Functions of SciPy

Compiled code reaches the functions of `scipy.special` by the pointers that `scipy.special.cython_special` gives away,
called through `ctypes` or as a `numba.types.WrapperAddressProtocol`, for any of the types that SciPy has them for, or
by their names where Numba has been told what they mean (`numba.extending.overload`, numba-scipy). All are
differentiated. The emitted source calls pointers as well, and needs SciPy. Functions that are not in this table, and
those of complex numbers, are refused.

| function | adjoints | refused in |
|---|---|---|
"""
REFUSALS = """
Refused:

| operation | because | instead |
|---|---|---|
"""


def _rules() -> Iterator[tuple[Op, Rule]]:
    for op, rows in ROWS.items():
        yield from ((op, row) for row in rows)
    for op in STRUCTURAL:
        for arity in (2, 3) if op in (max, min) else (2, 1, 3):
            found = rule_for(Instr(op, tuple(Param(types.float64) for _ in range(arity)), types.float64))
            if found is not None and op is not np.nan_to_num:
                yield op, found
    whole = tuple(Param(types.float64) for _ in range(3))
    found = rule_for(Instr(np.nan_to_num, whole, types.float64))
    assert found is not None
    yield np.nan_to_num, found


def _shown(rule: Rule) -> str:
    pairs = zip(rule.names, rule.adjoints, strict=True)
    given = ((name, text) for name, text in pairs if text is not None and text != UNKNOWN)
    texts = (f"`d{name} = {text.replace('|', chr(92) + '|')}`" for name, text in given)
    return "<br>".join(text if len(text) < 200 else text.split("=")[0] + "= ...` (a series)" for text in texts)


def _of_scipy() -> Iterator[str]:
    for name in scipy_special.names():
        rule = scipy_special.rule_of(name)
        assert rule is not None
        unknown = ", ".join(f"`{each}`" for n, each in enumerate(rule.names) if rule.is_unknown(n))
        yield f"| `{name}({', '.join(rule.names)})` | {_shown(rule) or 'none: it is a step function'} | {unknown} |"


def text() -> str:
    """Return the page."""
    groups: dict[Rule, list[str]] = {}
    for op, rule in _rules():
        if op not in HELPERS.values() and op not in ops.OWN and not is_helper(op):
            groups.setdefault(rule, []).append(f"`{ops.name_of(op)}`")
    rows = [f"| {', '.join(dict.fromkeys(names))} | {_shown(rule)} |" for rule, names in groups.items() if _shown(rule)]
    flat = dict.fromkeys(name for rule, names in groups.items() if not _shown(rule) for name in names)
    refusals = [f"| `{ops.name_of(op)}` | {why} | {instead} |" for op, (why, instead) in REFUSED.items()]
    found = HEAD + "\n".join(rows) + "\n" + FLAT + ", ".join(flat) + ".\n" + REFUSALS + "\n".join(refusals) + "\n"
    return found + OF_SCIPY + "\n".join(_of_scipy()) + "\n"
