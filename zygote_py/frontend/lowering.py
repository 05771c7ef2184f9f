"""Typed statements to SSA: one `Lowering` for each function.

    Assign("$imul", Operate(mul, ("r.2", "x"), (float64, float64)))   ->   %r2 = mul %r1, %x : f64
    Assign("r.1", Copy("$imul"))                                           (names that value)

A variable that is assigned in one place, which dominates its reader, is that operand; all others go through the
construction of Braun et al. (`zygote_py.ir.building.ssa`). Blocks are filled in reverse postorder and stand in the
order of the source. Expressions are in `zygote_py.frontend.expressions`; the methods that they need are at the end of
the class.
"""

from __future__ import annotations

import operator
from collections import Counter as Multiset
from collections.abc import Sequence

from numba import types

from zygote_py import numba_adapter
from zygote_py import statements as st
from zygote_py.adjoints.errors import refuse
from zygote_py.frontend import aliases, arrays, calls, choices, expressions, lists, objects, optional, values
from zygote_py.frontend.cleanup import clean_up
from zygote_py.frontend.emitter import Counter, Emitter, Iteration
from zygote_py.frontend.graph import Graph
from zygote_py.frontend.iteration import element_of, is_used_up
from zygote_py.frontend.program import Program
from zygote_py.frontend.renaming import is_parameter
from zygote_py.frontend.trees import flat_type, flatten, parameters_of, split, unflatten
from zygote_py.frontend.values import Bundle, leaves_of, plain
from zygote_py.ir import ops
from zygote_py.ir.analysis.dataflow import reach
from zygote_py.ir.building.ssa import SSABuilder
from zygote_py.ir.core import (
    Block,
    Branch,
    Const,
    Function,
    Instr,
    Loc,
    Operand,
    Param,
    Phi,
    Raise,
    Return,
    Type,
)
from zygote_py.ir.passes.canonical.thread_jumps import forward_jumps
from zygote_py.ir.passes.canonical.unrotate_loops import unrotate_loops
from zygote_py.ir.passes.cleanup.merge_blocks import merge_blocks
from zygote_py.ir.text.identifiers import identifier
from zygote_py.ir.types import components_of, is_scalar


class Advancing:
    """The loop of an iterator: what it iterates over, the counter's value, and the variables that hold the element."""

    def __init__(self, iteration: Iteration, count: Operand, condition: Operand, loc: Loc) -> None:
        self.iteration = iteration
        self.count = count
        self.condition = condition
        self.loc = loc
        self.holders: list[st.Variable] = []


class Lowering(Emitter):
    """The state of making one function; `run` makes it."""

    def __init__(self, typed: st.TypedFunction, program: Program, hidden: Sequence[object] | None = None) -> None:
        """`hidden` is given for a routine: the keys of its captured variables, in the order of its parameters."""
        super().__init__(Block(), typed.loc)
        self.typed = typed
        self.program = program
        self._hidden_keys = hidden
        self.graph = Graph(dict(typed.blocks), dict(typed.types))
        self.types = self.graph.types
        self.result_type = calls.retype_numbers(self.graph.blocks.values(), self.types, typed.return_type)
        self.function = Function(
            _function_name(typed.name), [], [], kind="primal", loc=typed.loc, options=typed.options
        )
        self.ssa = SSABuilder(self.function)
        self.static: dict[st.Variable, object] = {}  # the values of variables known while compiling
        self.iterations: dict[st.Variable, tuple[Iteration, Counter | None]] = {}
        self._iterators: dict[Iteration, tuple[Block, list[Block]]] = {}  # where created, where used up
        self.advancing: dict[st.Variable, Advancing] = {}  # by the variable that holds the pair or the element
        self.copied_if_needed: list[tuple[Operand, Operand, Loc]] = []  # arrays that Numba copies unless contiguous
        self._parameters: list[Bundle] = []
        self._single: dict[st.Variable, tuple[Block, Bundle]] = {}
        self._assigned = Multiset(
            each.target
            for block in self.graph.blocks.values()
            for each in block.statements
            if isinstance(each, st.Assign)
        )
        self._merges: list[tuple[Block, st.Merge, list[Phi], Type, Loc]] = []
        self._loops: list[tuple[Phi, Counter, st.Label]] = []
        self._bodies: dict[st.Label, list[Advancing]] = {}
        self._declared: set[st.Variable] = set()

    def run(self) -> Function:
        """Return the function in SSA form."""
        self._check_result()
        self._tree = self.graph.build_shells(self.function)
        labels = {shell: label for label, shell in self.graph.shells.items()}
        preds = {
            self.graph.shells[label]: [self.graph.shells[pred] for pred in found]
            for label, found in self.graph.predecessors().items()
        }
        waiting = {block: len(before) for block, before in preds.items()}  # for how many predecessors to be filled
        self.ssa.seal(self.function.entry, ())
        for block in self._tree.order:
            self.block = block
            if block is self.function.entry:
                if self._hidden_keys is None:
                    self._make_parameters()
                else:
                    self._make_parameters_of_routine(self._hidden_keys)
            self._fill(labels[block])
            for successor in block.successors:
                waiting[successor] -= 1
                if not waiting[successor]:
                    self.ssa.seal(successor, preds[successor])
        self._close_loops(preds)
        self._close_merges(labels, preds)
        self.ssa.finish()
        forward_jumps(self.function)
        merge_blocks(self.function)
        unrotate_loops(self.function)
        clean_up(self.function)
        lists.hoist_lengths(self.function)
        aliases.check_copied(self.function, self.copied_if_needed, is_routine=self._hidden_keys is not None)
        return self.function

    def _check_result(self) -> None:
        if any(isinstance(leaf, types.List) for leaf in leaves_of(self.result_type)):
            endings = [block.ending for block in self.graph.blocks.values()]
            self.loc = next(ending.loc for ending in endings if isinstance(ending, st.Leave))
            raise self.refuse("a list as the result is not supported", "return np.array(...) of it", "return")
        if isinstance(self.result_type, types.Optional) and self._hidden_keys is None:
            self.result_type = optional.result(self, self.graph.blocks.values())

    def _make_parameters(self) -> None:
        for name, type_ in zip(self.typed.parameters, self.typed.parameter_types, strict=True):
            kind = values.unsupported(type_)
            if kind:
                raise refuse(
                    f"the argument `{name}`, {kind}, is not supported",
                    self.typed.loc,
                    "use a number, an array, a tuple or a NamedTuple",
                    name,
                )
            param = Param(values.structure(type_), name, self.typed.loc)
            self.function.params.append(param)
            if leaves_of(type_):
                self._parameters.append(Bundle(plain(type_), split(self, param, param.type).leaves))
            else:
                self._parameters.append(Bundle(type_, (), numba_adapter.object_of(type_)))

    def _make_parameters_of_routine(self, keys: Sequence[object]) -> None:
        typed = self.typed
        made = [
            parameters_of(name, type_, typed.loc)
            for name, type_ in zip(typed.parameters, typed.parameter_types, strict=True)
        ]
        for type_, params in zip(typed.parameter_types, made, strict=True):
            static = numba_adapter.object_of(type_) if not params else None
            self._parameters.append(Bundle(type_, tuple(params), static))
        own = {capture.key: params for capture, params in zip(typed.hidden, made[typed.argument_count :], strict=True)}
        captured = [own[key] for key in keys]
        self.function.params += [param for params in (*made[: typed.argument_count], *captured) for param in params]

    def _fill(self, label: st.Label) -> None:
        block = self.graph.blocks[label]
        for advancing in self._bodies.get(label, ()):
            self.loc = advancing.loc
            element = element_of(advancing.iteration, advancing.count, self)
            for holder in advancing.holders:
                self.write(holder, element)
        for statement in block.statements:
            self.loc = statement.loc
            match statement:
                case st.Assign(target, st.Merge() as merge):
                    self._merge(target, merge)
                case st.Assign(target, st.Advance(iterator)):
                    self._advance(label, target, iterator)
                case st.Assign(target, st.Element(pair)):
                    self._hold(target, self.advancing[pair])
                case st.Assign(target, st.Present(pair)):
                    self.write(target, Bundle(types.boolean, (self.advancing[pair].condition,)))
                case st.Assign(target, st.Copy(source)) if source in self.advancing and self._assigned[source] == 1:
                    self._copy_element(target, source)
                case st.Assign(target, value):
                    by_name = not (isinstance(value, st.Copy) and is_parameter(value.source))
                    self.assign(target, expressions.evaluate(self, value, target), by_name)
                case st.Store():
                    arrays.store(self, statement)
                case st.SetAttribute():
                    objects.assign(self, statement)
                case st.Act():
                    expressions.act(self, statement)
        self.loc = block.ending.loc
        self._end(block.ending)

    def _copy_element(self, target: st.Variable, source: st.Variable) -> None:
        """Copy the element of a loop: in the header it does not exist yet; after it, it is like any other value."""
        if source in self._single:
            self.assign(target, self.read(source))
        else:
            self._hold(target, self.advancing[source])

    def _hold(self, target: st.Variable, advancing: Advancing) -> None:
        self.advancing[target] = advancing
        advancing.holders.append(target)

    def _end(self, ending: st.Ending) -> None:
        match ending:
            case st.Choose(condition, _, _):
                terminator = self.block.terminator
                assert isinstance(terminator, Branch)
                terminator.condition = self.cast(self.read(condition).leaves[0], types.boolean)
            case st.Leave(value):
                result = self.cast_bundle(self.read_whole(value), self.result_type)
                if self._hidden_keys is None:
                    self.block.terminator = Return((calls.whole(self, result, "return"),))
                else:
                    self.block.terminator = Return((flatten(self, result),))
            case st.Fail(exception, args):
                self.block.terminator = Raise(exception, tuple(map(self._raised, args)))
            case _:
                pass

    def invoke(self, expression: st.Invoke, type_: Type) -> Bundle:
        """Return the call of a routine."""
        operands = [leaf for arg in expression.args for leaf in self.read_whole(arg).leaves]
        routine = self.program.routine(expression.function)
        return unflatten(self, self.emit(routine, operands, flat_type(leaves_of(type_))), type_)

    def _raised(self, arg: object) -> Operand:
        if not isinstance(arg, st.Name):
            return values.literal(arg, self.loc)
        bundle = self.read(arg.variable)
        if len(bundle.leaves) != 1:
            raise self.refuse("this argument of an exception is not supported", "raise it with numbers or strings")
        return bundle.leaves[0]

    # ------------------------------------------------------------------------------------------ merges and loops

    def _merge(self, target: st.Variable, merge: st.Merge) -> None:
        type_ = self.types[target]
        shells = {self.graph.shells.get(label) for label, _ in merge.incoming}
        if not shells:
            self.write(target, Bundle(type_, values.undefined(type_)))
            return
        if not leaves_of(type_):
            self.write(target, self._same_object(merge, type_))
            return
        phis = [Phi(leaf, self._hint(target), self.loc) for leaf in leaves_of(type_)]
        self.block.phis += phis
        self._merges.append((self.block, merge, phis, type_, self.loc))
        self.write(target, Bundle(type_, tuple(phis)))

    def _same_object(self, merge: st.Merge, type_: Type) -> Bundle:
        """Return the common value of a merge of functions or the like, which must all be the same one."""
        found = [self.static.get(var) for _, var in merge.incoming if var is not None]
        if found and found[0] is not None and all(each is found[0] for each in found):
            return Bundle(type_, (), found[0])
        raise self.refuse(
            f"a variable that holds one of several objects of type `{type_}` is not supported",
            "use each of them in its own branch of an `if`",
        )

    def _close_merges(self, labels: dict[Block, st.Label], preds: dict[Block, list[Block]]) -> None:
        for block, merge, phis, type_, loc in self._merges:
            incoming = dict(merge.incoming)
            self.loc = loc
            for pred in preds[block]:
                self.block = pred
                variable = incoming.get(labels[pred])
                if variable is None:
                    leaves = values.undefined(type_)
                else:
                    leaves = self.cast_bundle(self.read_whole(variable), type_).leaves
                for phi, leaf in zip(phis, leaves, strict=True):
                    phi.incoming[pred] = leaf

    def make_iterator(self, target: st.Variable, over: Iteration) -> None:
        """Record a variable that holds an iterator over which no loop has begun."""
        self.iterations[target] = over, None
        self._iterators[over] = self.block, []

    def use_up(self, over: Iteration) -> None:
        """Refuse a second loop over an iterator, which the first one has exhausted."""
        if not is_used_up(over) or over not in self._iterators:
            return
        made, before = self._iterators[over]
        here = self.block
        again = here in before or comes_to(here, here, made)
        if again or any(comes_to(block, here, made) or comes_to(here, block, made) for block in before):
            raise self.refuse(
                "an iterator is looped over where another loop, or the same one before, may have used it up",
                "make it anew for each loop, in the `for` statement",
            )
        before.append(here)

    def _advance(self, label: st.Label, target: st.Variable, iterator: st.Variable) -> None:
        made = self.iterations.get(iterator)
        if made is None:
            raise self.refuse("this use of an iterator is not supported", "loop over it with `for`")
        iteration, counter = made
        ending = self.graph.blocks[label].ending
        if counter is None or not isinstance(ending, st.Choose):
            raise self.refuse("`next` is not supported", "loop over the values with `for`", "next")
        count = counter.start
        if label in self.graph.latches:  # else the body always leaves the loop
            count = phi = Phi(counter.type, "", self.loc)
            self.block.phis.append(phi)
            self._loops.append((phi, counter, label))
        stop = iteration.length(self) if lists.grows(iteration) else counter.stop
        compare = operator.lt if counter.step > 0 else operator.gt
        condition = self.emit(compare, (count, stop), types.boolean, "c")
        advancing = self.advancing[target] = Advancing(iteration, count, condition, self.loc)
        self._bodies.setdefault(ending.then, []).append(advancing)

    def _close_loops(self, preds: dict[Block, list[Block]]) -> None:
        for phi, counter, label in self._loops:
            header, latch = self.graph.shells[label], self.graph.shells[self.graph.latches[label]]
            step = Const(counter.step, counter.type)
            following = Instr(operator.add, (phi, step), counter.type, phi.hint, phi.loc)
            latch.instrs.append(following)
            phi.incoming = {pred: following if pred is latch else counter.start for pred in preds[header]}

    # -------------------------------------------------------------------------------- what expressions are made with

    def parameter(self, index: int) -> Bundle:
        """Return the argument with this number."""
        return self._parameters[index]

    def read(self, variable: st.Variable) -> Bundle:
        """Return the value of a variable here; if it may be `None`, there must be a value."""
        value = self.read_whole(variable)
        return optional.present(self, value) if optional.is_optional(value.type) else value

    def read_whole(self, variable: st.Variable) -> Bundle:
        """Return the value of a variable here."""
        type_ = self.types[variable]
        if variable in self._single:
            block, bundle = self._single[variable]
            if self._tree.dominates(block, self.block):
                return bundle
        elif not leaves_of(type_):
            return Bundle(type_, (), self.static.get(variable))
        self._declare(variable)
        keys = [(variable, index) for index in range(len(leaves_of(type_)))]
        return Bundle(type_, tuple(self.ssa.read(key, self.block) for key in keys))

    def write(self, variable: st.Variable, bundle: Bundle) -> None:
        """Make a variable hold a value of its own type."""
        if bundle.static is not None:
            self.static[variable] = bundle.static
        if self._assigned[variable] == 1:
            self._single[variable] = self.block, bundle
        self._declare(variable)
        for index, leaf in enumerate(bundle.leaves):
            self.ssa.write((variable, index), self.block, leaf)

    def _declare(self, variable: st.Variable) -> None:
        if variable in self._declared:
            return
        self._declared.add(variable)
        for index, leaf in enumerate(leaves_of(self.types[variable])):
            self.ssa.declare((variable, index), leaf, self._hint(variable))

    def _hint(self, variable: st.Variable) -> str:
        """Return the name that a variable has in the source; none for temporaries."""
        name = self.typed.names.get(variable, "")
        return name if name.strip("_") else ""

    def assign(self, variable: st.Variable, bundle: Bundle, by_name: bool = True) -> None:
        """Make a variable hold a value, cast to its type; a literal gets a named constant, if wanted."""
        type_ = self.types[variable]
        bundle = self.cast_bundle(bundle, type_)
        hint = self._hint(variable)
        by_name = by_name and not values.is_tuple(type_)
        leaves = (
            self._name(leaf, hint) if hint and (by_name or not isinstance(leaf, Const)) else leaf
            for leaf in bundle.leaves
        )
        bundle = Bundle(bundle.type, tuple(leaves), bundle.static)
        self.write(variable, bundle)

    def _name(self, operand: Operand, hint: str) -> Operand:
        match operand:
            case Const(_, type_) if is_scalar(type_):
                named = self.emit(ops.const, (operand,), type_, hint)
                self.homes[named] = self.block
                return named
            case Instr() | Phi() if operand.hint in ("", "c"):
                operand.hint = hint
        return operand

    def cast_bundle(self, bundle: Bundle, type: Type) -> Bundle:
        """Return a value as one of another type: numbers are converted, also those in tuples."""
        if bundle.type == type:
            return bundle
        if isinstance(type, types.Optional):
            return optional.held(self, bundle, type)
        if optional.is_optional(bundle.type):
            return self.cast_bundle(optional.present(self, bundle), type)
        if numba_adapter.is_choice(type):
            return choices.chosen(self, bundle, type)
        if values.is_tuple(type) and values.is_tuple(bundle.type):
            parts = zip(values.components(bundle), components_of(type), strict=True)
            cast = [self.cast_bundle(part, to) for part, to in parts]
            return Bundle(type, tuple(leaf for part in cast for leaf in part.leaves), bundle.static)
        if len(bundle.leaves) == 1 and len(leaves_of(type)) == 1:
            return Bundle(type, (self.cast(bundle.leaves[0], type),), bundle.static)
        return Bundle(type, bundle.leaves, bundle.static)


def comes_to(start: Block, target: Block, without: Block) -> bool:
    """Return whether control may flow from the end of one block to another one without passing a third."""
    return target in reach(start.successors, lambda block: block.successors, (without,))


def _function_name(name: str) -> str:
    return identifier(name, "lambda_")
