"""Custom derivatives: the rule of a function as forward and reverse functions of the usual form.

    routine f (%x), with the rule           f_forward (%x):                     f_reverse (%c, %dy):
    rule (%x) -> (%y, %c)                       %y, %c = rule %x                    %dx = back %dy, %c
    back (%dy, %c) -> (%dx)                     return %y, %c                       return %dx

An array's gradient is added to the shadow of the argument, after a check of its shape. The forward function saves the
captured variables of the pullback; an array that the caller may write to before the pullback runs is copied. The result
must not share memory if it, or an argument, is written to later: that is checked at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numba import types

from zygote_py.adjoints.analysis import is_array
from zygote_py.adjoints.errors import refuse
from zygote_py.adjoints.reverse.calls import Case, Derivation, Derivative, Deriver, Source
from zygote_py.adjoints.routines import ForwardFrame, refuse_if_shared, set_function
from zygote_py.adjoints.rules.formulas.expand import CASTS
from zygote_py.ir import (
    NONE,
    Block,
    Builder,
    Const,
    Function,
    Instr,
    Loc,
    Memory,
    Operand,
    Param,
    Routine,
    Type,
    has_memory,
    helper,
    ops,
    result_type,
    writable,
    zero,
)
from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Input:
    """The source of an argument of the pullback.

    `kind` is "seed" (the adjoint of a result), "kept" (a value that the rule's function returns after the results) or
    "argument" (of the function); `number` is the index.
    """

    kind: str
    number: int


@dataclass(frozen=True)
class Gradient:
    """A gradient for the parameter of this index: a result of the pullback ("back"), or the seed itself ("seed")."""

    kind: str
    number: int
    parameter: int


@dataclass(frozen=True, eq=False)
class Custom(Derivation):
    """A rule, in terms of the leaves of arguments and results.

    `rule` takes the parameters in `rule_inputs` and returns values of the types `returned`: the results, followed by
    the residuals; without a rule the one result is the first parameter, an array as a copy. `back` takes `back_inputs`
    and returns values of the types `contributions`, which `gradients` assigns to parameters.
    """

    name: str
    loc: Loc | None
    rule: Routine | None
    rule_inputs: tuple[int, ...]
    returned: tuple[Type, ...]
    back: Routine
    back_inputs: tuple[Input, ...]
    contributions: tuple[Type, ...]
    gradients: tuple[Gradient, ...]
    is_linear: bool = False  # the pullback is known to be

    @property
    def calls(self) -> tuple[Routine, ...]:
        """Return the rule and its pullback."""
        return (self.back,) if self.rule is None else (self.rule, self.back)

    def derive(self, made: Derivative, deriver: Deriver) -> Sequence[Routine]:
        """Make the two functions from the rule and its pullback."""
        check_pure(made.routine, self)
        self.back.has_side_effects = True  # it may raise, or inspect the gradient as a side effect
        maker = Maker(made, self)
        maker.forward()
        maker.reverse()
        return ()


def is_misshaped(gradient, x):  # type: ignore[no-untyped-def]
    """Return whether a gradient does not have the shape of what it is for."""
    return gradient.shape != x.shape


helper(is_misshaped)


def refuse_if_misshaped(b: Builder, custom: Custom, gradient: Operand, x: Operand, name: str) -> None:
    """Raise ValueError if a gradient for the argument of this name does not have its shape."""
    message = f"the pullback of {custom.name} gives a gradient for `{name}` that does not have its shape"
    test = Builder(b.block).call(is_misshaped, gradient, x, type=types.boolean)
    Builder(b.block, custom.loc).refuse_if(test, message)


def check_rules(routines: Iterable[Routine]) -> None:
    """Check the routines that have rules, also those of which no derivative is needed. Raises DifferentiationError."""
    for routine in routines:
        if isinstance(routine.derivation, Custom):
            check_pure(routine, routine.derivation)


def check_pure(routine: Routine, custom: Custom) -> None:
    """Check that a routine and its rule write to no argument. Raises DifferentiationError."""
    for each in (routine, custom.rule):
        if each is not None and each.writes:
            number = min(each.writes)
            params = each.function.params
            raise refuse(
                f"`{each.__name__}` writes to its argument `{params[number].hint}`, and has {custom.name}"
                if each is routine
                else f"{custom.name} writes to its argument `{params[number].hint}`",
                each.function.loc,
                "return a new array: writes of a function with a rule to its arguments are not differentiated",
                "def",
            )
    written = [number for number in custom.back.writes if custom.back_inputs[number].kind != "seed"]
    if written:
        raise refuse(
            f"the pullback of {custom.name} writes to an array that it captures",
            custom.back.function.loc,
            "write to a copy: the pullback may be called several times",
            "def",
        )


class Maker:
    """Makes the forward and the reverse function."""

    def __init__(self, derivative: Derivative, custom: Custom) -> None:
        self.derivative = derivative
        self.custom = custom
        self.routine = derivative.routine
        self.case: Case = derivative.case
        self.results = derivative.results
        self.inputs: list[Source | Operand] = []  # of the pullback, except seeds
        self.frame = ForwardFrame(derivative)
        self.params = self.frame.params
        self.b = self.frame.b

    # ---------------------------------------------------------------------------------------------------- forward

    def forward(self) -> None:
        """Make the function that computes the results and saves the captured variables of the pullback."""
        results = self.values()
        self.frame.make_shadows(results)
        self.frame.finish(results)

    def values(self) -> list[Operand]:
        """Compute the results, and save the inputs of the pullback, in the frame's block."""
        self.given, callee, taken = self._computed()
        results = [self._result(number, item) for number, item in enumerate(self.given[: len(self.results)])]
        self._check_apart(callee, taken, results)
        self._keep(callee, taken, len(results))
        return results

    def _computed(self) -> tuple[list[Operand], Function, tuple[int, ...]]:
        """Return the values of the rule or the function, the function that computes them, and its parameters."""
        custom = self.custom
        if custom.rule is None:  # the function returns its first parameter, as a copy
            (kind,) = self.results
            x, self.items = self.params[0], list[Operand]([NONE])
            return (
                [self.b.call(np.copy, x, type=kind, hint="y") if isinstance(kind, types.Array) else x],
                _nothing(),
                (),
            )
        callee, taken, kinds = custom.rule, custom.rule_inputs, custom.returned
        whole = self.b.call(callee, *(self.params[number] for number in taken), type=result_type(kinds))
        self.items = _returned(callee.function, len(kinds))
        own = {param: self.params[number] for param, number in zip(callee.function.params, taken, strict=True)}
        found: list[Operand] = []
        for number, item in enumerate(self.items):
            if isinstance(item, Const):
                found.append(item)
            elif isinstance(item, Param):
                found.append(own[item])
            else:
                found.append(self.b.item(whole, number) if len(kinds) > 1 else whole)
        return found, callee.function, taken

    def _result(self, number: int, item: Operand) -> Operand:
        """Return a result in the layout that the function itself returns."""
        kind = self.results[number]
        if not isinstance(kind, types.Array) or not isinstance(item.type, types.Array):
            return item
        if kind.layout in ("A", item.type.layout):
            return item
        return self.b.call(np.copy, item, type=writable(kind), hint="y")

    def _check_apart(self, function: Function, taken: Sequence[int], results: Sequence[Operand]) -> None:
        """Check that a result shares no memory with others, if it or an argument is written to later."""
        memory = Memory(function)
        arrays = [
            (n, item) for n, item in enumerate(self.items[: len(results)]) if isinstance(self.results[n], types.Array)
        ]
        for place, (number, item) in enumerate(arrays):
            if results[number] is not self.given[number]:
                continue  # a copy
            others: list[tuple[Operand, bool, str]] = [
                (self.params[n], n in self.case.clobbered, f"its argument `{self.params[n].hint}`")
                for n, param in zip(taken, function.params, strict=True)
                if isinstance(param.type, types.Array) and memory.may_share(item, param)
            ]
            others += [
                (results[n], False, "another of its results")
                for n, other in arrays[:place]
                if memory.may_share(item, other)
            ]
            for other, clobbered, what in others:
                if clobbered or self.case.clobbered_result:
                    message = (
                        f"{self.custom.name} gives an array that shares memory with {what}, and one of the two is "
                        "written to later: let it return a copy"
                    )
                    refuse_if_shared(Builder(self.b.block), other, results[number], message)

    def _keep(self, function: Function, taken: Sequence[int], results: int) -> None:
        """Choose the sources of the pullback's inputs, and save those that come from the forward function."""
        memory = Memory(function)
        own = dict(zip(function.params, taken, strict=True))
        kept: dict[Operand, Source] = {}
        for given in self.custom.back_inputs:
            if given.kind == "seed":
                continue
            if given.kind == "argument":
                value: Operand = self.params[given.number]
                clobbered = given.number in self.case.clobbered
            else:
                value = self.given[results + given.number]
                item = self.items[results + given.number]
                clobbered = has_memory(item.type) and (
                    any(n in self.case.clobbered and memory.may_share(item, param) for param, n in own.items())
                    or (self.case.clobbered_result and any(memory.may_share(item, r) for r in self.items[:results]))
                )
            if isinstance(value, Const) or isinstance(value.type, types.NoneType):
                self.inputs.append(value if isinstance(value, Const) else NONE)
            elif isinstance(value, Param) and not (clobbered and has_memory(value.type)):
                self.inputs.append(Source("argument", self.params.index(value)))
            else:
                if value not in kept:
                    copied = clobbered and has_memory(value.type)
                    kept[value] = self.frame.keep_copy(value, "kept") if copied else self.frame.keep(value)
                self.inputs.append(kept[value])

    # ---------------------------------------------------------------------------------------------------- reverse

    def reverse(self) -> None:
        """Make the function that calls the pullback and passes the gradients on."""
        derivative, function, custom = self.derivative, self.routine.function, self.custom
        b = self.b = Builder(Block(function.loc), function.loc)
        sources: list[Source] = []
        taken: list[Param] = []
        returned = derivative.returned

        def take(source: Source, kind: Type, hint: str) -> Param:
            if source not in sources:
                sources.append(source)
                taken.append(Param(kind, hint, function.loc))
            return taken[sources.index(source)]

        seeds = {n: Param(self.results[n], "dy", function.loc) for n in derivative.seeds}
        for place, number in enumerate(derivative.shadowed_results):
            seeds[number] = take(Source("result", len(self.results) + place), writable(self.results[number]), "dy")
        inputs = iter(self.inputs)
        args: list[Operand] = []
        for place, given in enumerate(custom.back_inputs):
            if given.kind == "seed":
                args.append(self._seed(given.number, seeds, place in custom.back.writes))
                continue
            source = next(inputs)
            if isinstance(source, Source):
                param = custom.back.function.params[place]
                kind = self.params[source.number].type if source.kind == "argument" else returned[source.number]
                source = take(source, kind, param.hint.removeprefix("closure__"))
            args.append(source)
        whole = b.call(custom.back, *args, type=result_type(custom.contributions))
        several = len(custom.contributions) > 1
        adjoints: dict[int, Operand] = {}
        for gradient in custom.gradients:
            if gradient.parameter not in self.case.active:
                continue
            param = self.params[gradient.parameter]
            value: Operand = seeds[gradient.number] if gradient.kind == "seed" else whole
            if gradient.kind != "seed" and several:
                value = b.item(whole, gradient.number)
            if is_array(param.type):
                place = len(self.params) + derivative.shadowed.index(gradient.parameter)
                shadow = take(Source("argument", place), writable(param.type), f"d{param.hint}")
                self._add(shadow, value, param)
            else:
                adjoints[gradient.parameter] = self._number(value, param.type)
        b.return_packed([adjoints.get(n, zero(self.params[n].type)) for n in derivative.adjoints])
        derivative.sources = tuple(sources)
        set_function(derivative.reverse, self.routine, [*taken, *(seeds[n] for n in derivative.seeds)], [b.block])

    def _seed(self, number: int, seeds: dict[int, Param], written: bool) -> Operand:
        """Return the adjoint of a result; a zero, or an array of zeros, for one without adjoint."""
        kind = self.results[number]
        if number not in seeds:
            if isinstance(kind, types.Array):
                raise refuse(
                    f"{self.custom.name} is of a function that returns an array of type {kind}",
                    self.custom.loc,
                    "return arrays of floating-point numbers",
                )
            return zero(kind) if isinstance(kind, types.Number | types.Boolean) else NONE
        seed = seeds[number]
        if written and isinstance(seed.type, types.Array):
            return self.b.call(np.copy, seed, type=seed.type, hint="dy")
        return seed

    def _add(self, shadow: Param, value: Operand, param: Param) -> None:
        """Add an array's gradient to its shadow."""
        assert isinstance(shadow.type, types.Array)
        assert isinstance(value.type, types.Array)
        refuse_if_misshaped(self.b, self.custom, value, shadow, param.hint)
        if value.type.dtype != shadow.type.dtype:
            kind = types.Array(shadow.type.dtype, value.type.ndim, "F" if value.type.layout == "F" else "C")
            value = self.b.call(np.copy, value, type=kind)
        self.b.accumulate(shadow, value)

    def _number(self, value: Operand, kind: Type) -> Operand:
        """Return a number's gradient, cast to the type of the number."""
        if value.type == kind:
            return value
        if isinstance(kind, types.Float) and not isinstance(value.type, types.Float):
            value = self.b.call(float, value, type=types.float64)
        return value if value.type == kind else self.b.call(CASTS[kind], value, type=kind)


def _nothing() -> Function:
    """Return a function without parameters and results."""
    return Function("nothing", [], [Block()])


def _returned(function: Function, count: int) -> list[Operand]:
    """Return the individual results of a routine."""
    _, end = function.exit()
    (value,) = end.args
    if count == 1:
        return [value]
    if not count:
        return []
    if isinstance(value, Instr) and value.op is ops.pack:
        return list(value.args)
    return [value] * count  # shares memory with everything that the items may share with
