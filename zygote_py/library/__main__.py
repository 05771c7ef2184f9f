"""Prints docs/numpy.md, what becomes of all that Numba can call: `python -m zygote_py.library > docs/numpy.md`."""

from __future__ import annotations

from collections.abc import Iterable

from zygote_py import numba_adapter
from zygote_py.library.catalogue import Kind, Status, names_of, status, status_of_member

HEAD = """\
# What can be differentiated

Generated from the registries of Numba and of the compiler: `python -m zygote_py.library`. It shows every function that
Numba 0.68 supports in these modules, and the methods of arrays. A function is supported in the forms of its arguments
that Numba has, by position and by keyword, with these exceptions, which are refused:

- `np.average`, `np.bincount` (its weights), `np.broadcast_to`, `np.corrcoef`, `np.cov`, `np.histogram`, `np.nanmax`,
  `np.nanmin`, `np.partition`, `np.sort`, `np.trapezoid`, `np.unwrap` and `np.where` of a list, a tuple or, some of
  them, a number in the place of an array, and `np.copy` of a list: write `np.array(...)` around it.
- `np.transpose` with an array for its axes: give a tuple.

- *Differentiable*: exact derivatives; what is said in brackets is the condition for one to exist.
- *No derivative by nature*: integers, truth values, what is constant wherever it has a derivative, and random draws.
  Such functions may be used anywhere, and no gradient flows through them. A draw from a continuous distribution is
  refused where a parameter of it has a derivative: transform a draw from the standard one.
- *Refused*: a `DifferentiationError` with the line, if a value with a derivative goes through it. It may be used on
  values that have none.

Operators and in-place operators on numbers and arrays are differentiable, and so are reading and writing elements,
slices, and selections by arrays of integers or truth values. [scalar-operations.md](scalar-operations.md) has the rules
of the scalar functions, [kinks.md](kinks.md) what holds at kinks.
"""
TITLES = {
    "np": "numpy",
    "np.linalg": "numpy.linalg",
    "np.random": "numpy.random",
    "math": "math",
    "cmath": "cmath",
    "builtins": "Python's own",
}


def _section(title: str, entries: Iterable[tuple[str, Status]]) -> str:
    lines = [f"\n## {title}\n"]
    found = list(entries)
    for kind in Kind:
        texts = [names + (f" ({given.note})" if given.note else "") for names, given in found if given.kind is kind]
        if texts:
            separator = "; " if any("(" in text for text in texts) else ", "
            lines.append(f"**{kind.value.capitalize()}:** {separator.join(texts)}.\n")
    return "\n".join(lines)


def text() -> str:
    """The page."""
    sections = [HEAD]
    for module, callables in numba_adapter.supported_callables().items():
        entries = ((names, status(op)) for op, names in names_of(module, callables).items())
        sections.append(_section(TITLES[module], entries))
    members = ((f"`.{name}`", status_of_member(name)) for name in numba_adapter.array_members())
    sections.append(_section("Methods and attributes of arrays", members))
    return "".join(sections)


if __name__ == "__main__":
    print(text(), end="")
