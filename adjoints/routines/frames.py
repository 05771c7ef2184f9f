"""The frames of derivatives that are built directly, and not split off from a joint function.

f_forward (%x, %dx):                f_reverse (%x, %dx, %dz, %dy):
    %y, %z = f %x                       ...                         the parameters: what is taken from the forward
    %dz = np.zeros_like %z                                          function, shadows of arguments and of results,
    return %y, %z, %dz                                              and the adjoints of the other results
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from zygote_py.adjoints.analysis import Summaries, can_have_adjoint, find_active, is_array
from zygote_py.adjoints.reverse.calls import Case, Derivative, Source, name_apart, plain_case
from zygote_py.ir import Block, Builder, Function, Operand, Param, Phi, Routine, items_of, writable, zero


class ForwardFrame:
    """A forward function of one block, `b`: its parameters, its residuals, and its results."""

    def __init__(self, derivative: Derivative) -> None:
        self._derivative = derivative
        function = derivative.routine.function
        derivative.shadowed_results = tuple(n for n, type in enumerate(derivative.results) if is_array(type))
        self.params = [Param(param.type, param.hint, param.loc) for param in function.params]
        self.b = Builder(Block(function.loc), function.loc)
        self.kept: list[Operand] = []
        self._made: list[Operand] = []

    def call(self) -> Sequence[Operand]:
        """Call the routine, make shadows of its results, and return the results."""
        items = self.b.call_all(self._derivative.routine, self.params, self._derivative.results)
        self.make_shadows(items)
        return items

    def make_shadows(self, results: Sequence[Operand]) -> None:
        """Make the shadows of results, which are returned as well."""
        self._made = [self.b.zeros_like(results[n], "shadow") for n in self._derivative.shadowed_results]

    def keep(self, value: Operand) -> Source:
        """Save a value for the reverse function by returning it; return its source there."""
        if value not in self.kept:
            self.kept.append(value)
        first = len(self._derivative.results) + len(self._derivative.shadowed_results)
        return Source("result", first + self.kept.index(value))

    def keep_copy(self, value: Operand, hint: str) -> Source:
        """Save a copy of the current contents of an array."""
        return self.keep(self.b.copy(value, hint))

    def value(self, source: Source) -> Operand:
        """Return the argument or the residual that a source denotes."""
        derivative = self._derivative
        first = len(derivative.results) + len(derivative.shadowed_results)
        return self.params[source.number] if source.kind == "argument" else self.kept[source.number - first]

    def set_sources(self, taken: Sequence[Source]) -> None:
        """Set the inputs of the reverse function: `taken`, the shadows of the arguments, and those of the results."""
        derivative = self._derivative
        of_args = (Source("argument", len(self.params) + place) for place in range(len(derivative.shadowed)))
        of_results = (Source("result", len(derivative.results) + place) for place in range(len(self._made)))
        derivative.sources = (*taken, *of_args, *of_results)

    def finish(self, results: Sequence[Operand]) -> None:
        """Make the function."""
        derivative = self._derivative
        shadows = [shadow_param(self.params[n]) for n in derivative.shadowed]
        derivative.kept = tuple(value.type for value in self.kept)
        self.b.return_packed([*results, *self._made, *self.kept])
        set_function(derivative.forward, derivative.routine, [*self.params, *shadows], [self.b.block])


class ReverseFrame:
    """The parameters of a reverse function, keyed by the parameters and the results that they belong to."""

    def __init__(self, derivative: Derivative, taken: Sequence[Param], hint: Callable[[int], str]) -> None:
        """Create the parameters; `taken` are the routine's own, and `hint` names the adjoints of results by index."""
        self._derivative = derivative
        loc, results = derivative.routine.function.loc, derivative.results
        self.taken = taken
        self.shadows = {n: shadow_param(taken[n]) for n in derivative.shadowed}
        self.given = {n: Param(writable(results[n]), hint(n), loc) for n in derivative.shadowed_results}
        self.seeds = {n: Param(results[n], hint(n), loc) for n in derivative.seeds}

    def finish(self, blocks: Sequence[Block], before_seeds: Sequence[Param] = ()) -> None:
        """Make the function; it may have further parameters before the adjoints."""
        params = [*self.taken, *self.shadows.values(), *self.given.values(), *before_seeds, *self.seeds.values()]
        set_function(self._derivative.reverse, self._derivative.routine, params, blocks)


class LoopState:
    """The loop-carried adjoints of a reversed loop: of the state, and sums for the other values it uses.

    `given` and `seeds` are phis of the header for the adjoints of the state, `sums` for those of other parameters.
    """

    def __init__(self, header: Block, entry: Block) -> None:
        self._header, self._entry = header, entry
        self.given: dict[int, Phi] = {}
        self.seeds: dict[int, Phi] = {}
        self.sums: dict[int, Phi] = {}

    def carry(self, value: Operand, hint: str) -> Phi:
        """Return a phi with a value on entry to the loop."""
        phi = Phi(value.type, hint, self._header.loc, {self._entry: value})
        self._header.phis.append(phi)
        return phi

    def start(self, given: Mapping[int, Param], seeds: Mapping[int, Param], used: Mapping[int, Param]) -> None:
        """Initialize the adjoints of the final state, and zero sums for the other values that iterations `used`."""
        self.given = {number: self.carry(param, param.hint) for number, param in given.items()}
        self.seeds = {number: self.carry(param, param.hint) for number, param in seeds.items()}
        self.sums = {number: self.carry(zero(param.type), f"d{param.hint}") for number, param in used.items()}

    def go_on(self, b: Builder, shadows: Mapping[int, Operand], found: Mapping[int, Operand]) -> None:
        """Set the next values of the phis, at the end of a block that leads back to the header."""
        for number, phi in self.given.items():
            phi.incoming[b.block] = shadows[number]
        for number, phi in self.seeds.items():
            phi.incoming[b.block] = found.get(number, zero(phi.type))
        for number, phi in self.sums.items():
            phi.incoming[b.block] = b.call(operator.add, phi, found[number], type=phi.type)


def shadow_param(param: Param) -> Param:
    """Return a parameter for the shadow of a parameter."""
    return Param(writable(param.type), f"d{param.hint or 't'}", param.loc)


def set_function(routine: Routine, primal: Routine, params: list[Param], blocks: Sequence[Block]) -> None:
    """Set the function of a derivative, with the location and the options of the primal's."""
    name_apart(params)
    function = primal.function
    routine.function = Function(routine.__name__, params, list(blocks), "joint", None, function.loc, function.options)


def case_of_body(body: Routine, case: Case) -> Case:
    """Return the case of one iteration: a value that becomes active in one is active in the next."""
    function = body.function
    active = set(case.active)
    written = [function.params[number] for number in sorted(body.writes)]
    while True:
        activity = find_active(function, [function.params[number] for number in sorted(active)], results=written)
        _, end = function.exit()
        items = items_of(end.args[0])
        found = {number for number, item in enumerate(items) if item in activity and can_have_adjoint(item.type)}
        if found <= active:
            # The next iteration may leave out a result of this one.
            degree = max(case.left_out, *Summaries().of(body))
            return plain_case(Case(frozenset(active), case.clobbered, False, degree))
        active |= found
