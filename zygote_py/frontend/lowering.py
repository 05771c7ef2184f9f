"""Typed statements to SSA: one `Lowering` for each function.

    Assign("$imul", Operate(mul, ("r.2", "x"), (float64, float64)))   ->   %r2 = mul %r1, %x : f64
    Assign("r.1", Copy("$imul"))                                           (names that value)

Blocks are filled in reverse postorder and stand in the order of the source. What the variables hold is in
`zygote_py.frontend.frames`, the lowering of expressions in `zygote_py.frontend.expressions.evaluation`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from numba import types

from zygote_py import numba_adapter
from zygote_py.base import statements as st
from zygote_py.frontend import inlining
from zygote_py.frontend.derived import function_of, inlined
from zygote_py.frontend.expressions import calls, dicts, evaluation, list_copies, lists, records, shared_copies
from zygote_py.frontend.frames import NO_VARIABLE, Advancing, Frame, Variables
from zygote_py.frontend.graphs import exceptions as handlers
from zygote_py.frontend.graphs.cleanup import clean_up
from zygote_py.frontend.program import Program, name_among
from zygote_py.frontend.values import (
    Counter,
    Iteration,
    LoweredValue,
    alternatives,
    constant,
    element_of,
    flat_type,
    flatten,
    is_dict,
    is_used_up,
    leaves_of,
    literal,
    parameter,
    parameters_of,
    undefined,
    unflatten,
)
from zygote_py.ir import (
    Block,
    Branch,
    Builder,
    Const,
    Function,
    Instr,
    Jump,
    Loc,
    Operand,
    Phi,
    Raise,
    Return,
    Type,
    forward_jumps,
    identifier,
    inserting,
    is_scalar,
    merge_blocks,
    predecessors,
    replace_uses,
    reverse_postorder,
    unrotate_loops,
)
from zygote_py.ir.analysis import reach


class Lowering(Variables):
    """The state of making one function; `run` makes it."""

    def __init__(self, typed: st.TypedFunction, program: Program, *, is_routine: bool = False) -> None:
        name, options = identifier(typed.name, "lambda_"), program.options(typed)
        function = Function(name, [], [], kind="primal", loc=typed.loc, options=options)
        super().__init__(function, typed.loc)
        self.program = program
        self._is_routine = is_routine
        self.captured = program.captured(typed)
        self.frozen = {capture.key: capture for capture in typed.frozen}
        self._values: dict[object, LoweredValue] = {}  # of the captured variables
        self._iterators: dict[Iteration, tuple[Block, list[Block]]] = {}  # where created, where used up
        self.copied_if_needed: list[tuple[Operand, Loc]] = []  # copies that Numba makes if needed
        self._merges: list[tuple[Frame, st.Label, st.Phi, list[Phi], Type, Loc]] = []
        self._loops: list[tuple[Frame, st.Label, Phi, Counter]] = []
        self._typed = typed
        self._root = Frame(program.prepared(typed), ())
        self.enter(self._root)

    def run(self) -> Function:
        """Return the function in SSA form."""
        self._check_result()
        shells = list(self.frame.shells.values())
        self.function.blocks = shells
        self.begin(shells[0], ())
        self._make_parameters(self._typed)
        self._lower(self.frame)
        self._close_loops()
        self._close_merges()
        self.enter(self._root)
        self.function.blocks = [block for block in self.function.blocks if block in self.dominator]
        self.ssa.finish()
        forward_jumps(self.function)
        merge_blocks(self.function)
        list_copies.expand_copies(self.function)
        unrotate_loops(self.function)
        dicts.settle_loops(self.function)
        clean_up(self.function)
        lists.hoist_lengths(self.function)
        shared_copies.check_copied(self.function, self.copied_if_needed, is_routine=self._is_routine)
        return self.function

    def _check_result(self) -> None:
        if self._is_routine and any(isinstance(leaf, types.List) for leaf in leaves_of(self.frame.result_type)):
            endings = [block.ending for block in self.frame.graph.blocks.values()]
            self.loc = next(ending.loc for ending in endings if isinstance(ending, st.Return))
            if is_dict(self.frame.result_type):
                hint = "return an array or a tuple of what it holds"
                raise self.refuse("a dict as the result is not supported", hint, "return")
            raise self.refuse("a list as the result is not supported", "return np.array(...) of it", "return")
        if isinstance(self.frame.result_type, types.Optional) and not self._is_routine:
            self.frame.result_type = alternatives.result(self, self.frame.graph.blocks.values(), self.frame.result_type)

    def _make_parameters(self, typed: st.TypedFunction) -> None:
        count = typed.argument_count
        arguments = zip(typed.parameters[:count], typed.parameter_types, strict=False)
        self.frame.arguments = [self._make_parameter(name, type_, self) for name, type_ in arguments]
        if self._is_routine:
            captured = [(self.captured.get(each.key, (each,))[0], type_) for each, type_ in self.program.hidden(typed)]
        else:
            captured = list(self.captured.values())
        for capture, type_ in captured:
            self._values[capture.key] = self._make_parameter(capture.name, type_, self)

    def _make_parameter(self, name: str, type_: Type, b: Builder) -> LoweredValue:
        """Return the value of a new parameter, or of several for one of a routine."""
        loc = self.frame.typed.loc
        if self._is_routine:
            params = parameters_of(name, type_, loc)
            self.function.params += params
            return LoweredValue(type_, tuple(params), numba_adapter.object_of(type_) if not params else None)
        param, value = parameter(b, name, type_, loc)
        self.function.params.append(param)
        return value

    # ------------------------------------------------------------------------------------------------------- blocks

    def _lower(self, frame: Frame) -> None:
        """Fill the blocks of a frame; control is at the first of them."""
        caller, around = self.frame, self.loc
        self.enter(frame)
        waiting = {label: len(before) for label, before in frame.preds.items()}  # for how many to be filled
        for label in frame.order:
            if preds := frame.predecessors(label):
                self.begin(frame.shells[label], [block for block, _ in preds], seal=False)
            if preds or label == frame.order[0]:
                self._fill(label)
            for successor in frame.graph.successors(label):
                waiting[successor] -= 1
                if not waiting[successor] and (preds := frame.predecessors(successor)):
                    self.ssa.seal(frame.shells[successor], [block for block, _ in preds])
        self.enter(caller)
        self.loc = around

    def _fill(self, label: st.Label) -> None:
        frame = self.frame
        block = frame.graph.blocks[label]
        frame.handler = block.ending.handler if isinstance(block.ending, st.Try) else None
        for advancing in frame.bodies.get(label, ()):
            self.loc = advancing.loc
            element = element_of(advancing.iteration, advancing.count, self)
            for holder in advancing.holders:
                self.write(holder, element)
        with suppress(_NeverReturns):
            for statement in block.statements:
                self.loc = frame.loc or statement.loc
                self._statement(label, statement)
            self.loc = frame.loc or block.ending.loc
            self._end(label, block.ending)
        frame.handler = None

    def _statement(self, label: st.Label, statement: st.Statement) -> None:
        frame = self.frame
        match statement:
            case st.Assign(target, st.Phi() as merge):
                self._merge(label, target, merge)
            case st.Assign(target, st.Advance(iterator)):
                self._advance(label, target, iterator)
            case st.Assign(target, st.Element(pair)):
                self._hold(target, frame.advancing[pair])
            case st.Assign(target, st.Present(pair)):
                self.write(target, LoweredValue(types.boolean, (frame.advancing[pair].condition,)))
            case st.Assign(target, st.Copy(source)) if frame.is_to_come(source):
                self._hold(target, frame.advancing[source])
            case st.Assign(target, st.Copy(source)):
                if (
                    source in frame.never_none
                    and frame.assigned[target] == 1
                    and alternatives.is_optional(self.types[target])
                ):
                    self.types[target] = self.types[source]
                    frame.never_none.add(target)
                self.assign(target, self.read_whole(source))
            case st.Assign(target, st.Parameter(index)):
                self.assign(target, self._argument(index), by_name=False)
            case _:
                self._evaluate(statement)

    def _evaluate(self, statement: st.Statement) -> None:
        frame = self.frame
        target = statement.target if isinstance(statement, st.Assign) else NO_VARIABLE
        if (call := inlining.inlined(self, frame, target, statement)) is not None:
            self._inline(call, target)
            return
        self._check_in_try(statement)
        if target is not NO_VARIABLE:
            records.refuse_held(self, self.types[target])
        if not isinstance(statement, st.Assign):
            evaluation.act(self, statement)
            return
        self.assign(target, evaluation.evaluate(self, statement.value, target))
        if (initializer := inlining.initialized(self, frame, statement)) is not None:
            self._inline(initializer, NO_VARIABLE)

    def _hold(self, target: st.Variable, advancing: Advancing) -> None:
        self.frame.advancing[target] = advancing
        advancing.holders.append(target)

    def _end(self, label: st.Label, ending: st.Ending) -> None:
        frame = self.frame
        match ending:
            case st.Branch(condition, _, _):
                terminator = self.block.terminator
                assert isinstance(terminator, Branch)
                terminator.condition = self.cast(self.read(condition).leaves[0], types.boolean)
            case st.Try(_, target):
                self.block.terminator = Jump(frame.shells[target])
            case st.Return(value):
                result = self.cast_bundle(self.read_whole(value), frame.result_type)
                if frame is self._root:
                    whole = flatten(self, result) if self._is_routine else calls.whole(self, result, "return")
                    self.block.terminator = Return((whole,))
                frame.returned.append((self.block, result))
            case st.Raise(exception, args):
                self._raise(exception, args)
                return
        frame.ends[label] = self.block

    # --------------------------------------------------------------------------------------------- exceptions, calls

    def _raise(self, exception: type[BaseException] | None, args: tuple[object, ...]) -> None:
        if not self._goes_to_handler():
            self.block.terminator = Raise(exception, tuple(map(self._raised, args)))

    def _goes_to_handler(self) -> bool:
        """End a block that raises an exception with a jump to the handler, if there is one; return whether there is."""
        if (catching := self.frame.catching()) is None:
            return False
        frame, handler = catching
        self.block.terminator = Jump(frame.shells[handler])
        frame.raising.setdefault(handler, []).append(self.block)
        return True

    def _check_in_try(self, statement: st.Statement) -> None:
        """Go to the handler if what follows divides by zero, lacks a key or fails a trial; refuse other failures."""
        if (catching := self.frame.catching()) is None:
            return
        frame, handler = catching
        test: Operand
        found = handlers.divisor(statement, self.types, self.frame.methods, frame.typed.options)
        needed = handlers.key_needed(statement, self.types)
        if found is not None:
            variable, type_ = found
            divisor = self.cast(self.read(variable).leaves[0], type_)
            test = self.emit(operator.eq, (divisor, constant(0, type_)), types.boolean, "c")
        elif needed is not None:
            of, key = needed
            test = dicts.lacks(self, self.read(of), self.read(key.variable) if isinstance(key, st.Name) else key)
        elif (called := handlers.trial_of(statement, self.types)) is not None:
            trial, args = called
            test = self.emit(trial, [self.read(arg).leaves[0] for arg in args], types.boolean, "c")
        else:
            return
        before, following = self.block, Block(self.block.loc)
        following.terminator = before.terminator
        before.terminator = Branch(test, frame.shells[handler], following)
        frame.raising.setdefault(handler, []).append(before)
        self._insert(before, [following])
        self.begin(following, [before])

    def _insert(self, after: Block, blocks: Sequence[Block]) -> None:
        place = self.function.blocks.index(after) + 1
        self.function.blocks[place:place] = blocks

    def _argument(self, index: int) -> LoweredValue:
        typed, count = self.frame.typed, self.frame.typed.argument_count
        if index < count:
            return self.frame.arguments[index]
        return self._captured_value(typed.hidden[index - count], typed.parameter_types[index], typed.name)

    def _captured_value(self, capture: st.Capture, type_: Type, callee: str) -> LoweredValue:
        """Return the value of a captured variable: a parameter; a new one for a function that the library calls."""
        if capture.key not in self._values:
            name = name_among({param.hint for param in self.function.params}, capture.name, callee)
            self.captured[capture.key] = replace(capture, name=name), type_
            with inserting(self.function.entry) as b:
                self._values[capture.key] = self._make_parameter(name, type_, b)
        records.make_readonly(self._values[capture.key])
        return self._values[capture.key]

    def _inline(self, call: inlining.Inlined, target: st.Variable) -> None:
        """Lower the call of a function with a body here, unless it is a routine; assign the result to a variable."""
        function = call.function
        for capture in function.frozen:
            self.frozen.setdefault(capture.key, capture)
        is_library = call.is_library or self.frame.is_library
        if not is_library and self.program.is_routine(function):
            self._assign_result(target, self._invoke(function, call.arguments))
            return
        loc = self.loc if is_library else None
        frame = Frame(self.program.prepared(function), call.arguments, self.frame, loc, is_library)
        calling, rest = self.block, Block(self.block.loc)
        (entry, *_), endings = frame.shells, [block.ending for block in frame.graph.blocks.values()]
        in_place = len(endings) == 1 and isinstance(endings[0], st.Return)
        if in_place:
            frame.shells[entry] = calling
        else:
            rest.terminator, calling.terminator = calling.terminator, Jump(frame.shells[entry])
            for shell, ending in zip(frame.shells.values(), endings, strict=True):
                if isinstance(ending, st.Return):
                    shell.terminator = Jump(rest)
            self._insert(calling, [*frame.shells.values(), rest])
            self.begin(frame.shells[entry], [calling])
        self._lower(frame)
        if not frame.returned:
            raise _NeverReturns
        self.frame.assigned[target] += len(frame.returned) - 1
        for self.block, result in frame.returned:
            self._assign_result(target, result)
        if not in_place:
            self.begin(rest, [block for block, _ in frame.returned])

    def _assign_result(self, target: st.Variable, result: LoweredValue) -> None:
        if is_scalar(result.type) and isinstance(self.types[target], types.Array):
            self.frame.retype([target])  # the result of `np.where` of numbers
        self.assign(target, result)

    def _invoke(self, function: st.TypedFunction, arguments: Sequence[LoweredValue]) -> LoweredValue:
        """Return the call of a routine, which takes its captured variables and those of its callees, too."""
        hidden = [self._captured_value(each, type_, function.name) for each, type_ in self.program.hidden(function)]
        operands = [leaf for arg in (*arguments, *hidden) for leaf in arg.leaves]
        if (known := inlined(function)) is not None:
            self.program.inlined[function] = known
            own = function_of(function, known)
            if self.frame.catching() is not None:
                handlers.check_inlined(own, self.loc)
            return unflatten(self, self._spliced(own, operands), function.return_type)
        if self.frame.catching() is not None:
            handlers.check_routine(function, self.loc)
        if function.runs_again:  # with the lists that are given, whatever the caller does to them
            operands = [list_copies.with_own_items(self, leaf) for leaf in operands]
        type_ = function.return_type
        value = self.emit(self.program.routine(function), operands, flat_type(leaves_of(type_)))
        result = unflatten(self, value, type_)
        return result if function.derived is None else dicts.with_own_keys(self, result)

    def _spliced(self, function: Function, operands: Sequence[Operand]) -> Operand:
        """Put the blocks of a function here, and return its result."""
        replace_uses(function, dict(zip(function.params, operands, strict=True)))
        calling, rest = self.block, Block(self.block.loc)
        rest.terminator, calling.terminator = calling.terminator, Jump(function.entry)
        self._insert(calling, [*function.blocks, rest])
        preds = {**predecessors(function), function.entry: [calling]}
        for block in reverse_postorder(function):
            self.begin(block, [pred for pred in preds[block] if pred in self.dominator], seal=False)
            self.ssa.seal(block, preds[block])
            if isinstance(block.terminator, Raise):
                self._goes_to_handler()
        last, end = function.exit()
        last.terminator = Jump(rest)
        self.begin(rest, [last])
        return end.args[0]

    def _raised(self, arg: object) -> Operand:
        if not isinstance(arg, st.Name):
            return literal(arg, self.loc)
        bundle = self.read(arg.variable)
        if len(bundle.leaves) != 1:
            raise self.refuse("this argument of an exception is not supported", "raise it with numbers or strings")
        return bundle.leaves[0]

    # ------------------------------------------------------------------------------------------ merges and loops

    def _merge(self, label: st.Label, target: st.Variable, merge: st.Phi) -> None:
        type_ = self.types[target]
        if not merge.incoming:
            self.write(target, LoweredValue(type_, undefined(type_)))
            return
        if not leaves_of(type_):
            self.write(target, self._same_object(merge, type_))
            return
        phis = [Phi(leaf, self.hint(target), self.loc) for leaf in leaves_of(type_)]
        self.block.phis += phis
        self._merges.append((self.frame, label, merge, phis, type_, self.loc))
        self.write(target, LoweredValue(type_, tuple(phis)))

    def _same_object(self, merge: st.Phi, type_: Type) -> LoweredValue:
        """Return the common value of a merge of functions or the like, which must all be the same one."""
        found = [self.frame.static.get(var) for _, var in merge.incoming if var is not None]
        if found and found[0] is not None and all(each is found[0] for each in found):
            return LoweredValue(type_, (), found[0])
        raise self.refuse(
            f"a variable that holds one of several objects of type `{type_}` is not supported",
            "use each of them in its own branch of an `if`",
        )

    def _close_merges(self) -> None:
        for frame, label, merge, phis, type_, loc in self._merges:
            self.enter(frame)
            self.loc = loc
            incoming = dict(merge.incoming)
            for self.block, pred in frame.predecessors(label):
                variable = incoming.get(pred)
                leaves = (
                    undefined(type_) if variable is None else self.cast_bundle(self.read_whole(variable), type_).leaves
                )
                for phi, leaf in zip(phis, leaves, strict=True):
                    phi.incoming[self.block] = leaf

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
        if (made := self.iterations.get(iterator)) is None:
            raise self.refuse("this use of an iterator is not supported", "loop over it with `for`")
        iteration, counter = made
        frame = self.frame
        ending = frame.graph.blocks[label].ending
        if counter is None or not isinstance(ending, st.Branch):
            raise self.refuse("`next` is not supported", "loop over the values with `for`", "next")
        count = counter.start
        if label in frame.graph.latches:  # else the body always leaves the loop
            count = phi = Phi(counter.type, "", self.loc)
            self.block.phis.append(phi)
            self._loops.append((frame, label, phi, counter))
        stop = iteration.length(self) if lists.grows(iteration) else counter.stop
        compare = operator.lt if counter.step > 0 else operator.gt
        condition = self.emit(compare, (count, stop), types.boolean, "c")
        advancing = frame.advancing[target] = Advancing(iteration, count, condition, self.loc)
        frame.bodies.setdefault(ending.then, []).append(advancing)

    def _close_loops(self) -> None:
        for frame, label, phi, counter in self._loops:
            latch = frame.ends.get(frame.graph.latches[label])
            step = Const(counter.step, counter.type)
            following = Instr(operator.add, (phi, step), counter.type, phi.hint, phi.loc)
            if latch is not None:
                latch.instrs.append(following)
            for pred, _ in frame.predecessors(label):
                phi.incoming[pred] = following if pred is latch else counter.start


def comes_to(start: Block, target: Block, without: Block) -> bool:
    """Return whether control may flow from the end of one block to another one without passing a third."""
    return target in reach(start.successors, lambda block: block.successors, (without,))


class _NeverReturns(Exception):
    """Control does not come back from a call, so that what follows is not lowered."""
