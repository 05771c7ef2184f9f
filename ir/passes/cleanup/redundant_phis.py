"""Remove phis that always have the value of one operand, also where several refer to each other in a loop.

    b1:                                                 b1:
      %a: f64 = phi b0: %x, b3: %b        ->              branch %c, b2, b3
      branch %c, b2, b3                                 b2:
    b2:                                                   jump b3
      jump b3                                           b3:
    b3:                                                   branch %d, b1, b4
      %b: f64 = phi b1: %a, b2: %a                      b4:
      branch %d, b1, b4                                   return %x
    b4:
      return %b

`undef` is an operand like any other: phi(%x, undef) remains.

The algorithm is number 5 of Braun et al. 2013: sets of phis that refer to each other are strongly connected components.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from zygote_py.ir.core import Const, Function, Operand, Phi, Undef, Value
from zygote_py.ir.walks import replace, resolved


def remove_redundant_phis(function: Function) -> None:
    """Replace every set of phis that has a single operand outside of the set by that operand."""
    _remove(function, lambda outer: True)


def remove_constant_phis(function: Function) -> None:
    """Replace every set of phis that has a single operand outside of the set, a constant, by that constant."""
    _remove(function, lambda outer: isinstance(outer, Const))


def _remove(function: Function, is_removed: Callable[[Operand], bool]) -> None:
    replaced: dict[Value, Operand] = {}
    pending = [function.phis()]
    while pending:
        for component in _components(pending.pop(), replaced):
            inner, outer = _split(component, replaced)
            if len(outer) <= 1 and all(map(is_removed, outer)):
                replaced |= {phi: outer[0] if outer else Undef(phi.type) for phi in component}
            elif inner:
                pending.append(inner)
    replace(function, replaced)


def _split(component: list[Phi], replaced: dict[Value, Operand]) -> tuple[list[Phi], list[Operand]]:
    """Return the phis of a component without operands outside of it, and the operands outside of it."""
    members = set(component)
    inner: list[Phi] = []
    outer: dict[Operand, None] = {}
    for phi in component:
        outside = [each for each in (resolved(arg, replaced) for arg in phi.args) if each not in members]
        outer |= dict.fromkeys(outside)
        if not outside:
            inner.append(phi)
    return inner, list(outer)


def _components(phis: Collection[Phi], replaced: dict[Value, Operand]) -> list[list[Phi]]:
    """Return the strongly connected components of the graph from phis to their operands, operands first (Tarjan)."""
    members = set(phis)
    number: dict[Phi, int] = {}
    lowest: dict[Phi, int] = {}
    open_: list[Phi] = []
    is_open: set[Phi] = set()
    found: list[list[Phi]] = []

    def used_by(phi: Phi) -> list[Phi]:
        operands = (resolved(operand, replaced) for operand in phi.args)
        return [operand for operand in operands if isinstance(operand, Phi) and operand in members]

    def enter(phi: Phi) -> None:
        number[phi] = lowest[phi] = len(number)
        open_.append(phi)
        is_open.add(phi)
        stack.append((phi, used_by(phi)))

    stack: list[tuple[Phi, list[Phi]]] = []
    for root in phis:
        if root in number:
            continue
        enter(root)
        while stack:
            phi, rest = stack[-1]
            if rest:
                operand = rest.pop()
                if operand not in number:
                    enter(operand)
                elif operand in is_open:
                    lowest[phi] = min(lowest[phi], number[operand])
                continue
            stack.pop()
            if stack:
                lowest[stack[-1][0]] = min(lowest[stack[-1][0]], lowest[phi])
            if lowest[phi] == number[phi]:
                component: list[Phi] = []
                while not component or component[-1] is not phi:
                    component.append(open_.pop())
                    is_open.discard(component[-1])
                found.append(component)
    return found
