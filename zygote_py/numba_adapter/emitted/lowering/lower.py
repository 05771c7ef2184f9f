"""Numba's class that lowers a function, for emitted functions.

Variables are values of LLVM's where they can be (`registers`), elements of arrays are read and written without a copy
of the array's structure (`elements`), loops over ranges count with numbers alone (`ranges`), and the implementation of
an operator is looked up once for operands of the same types.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.ir as llvm
from numba import types

from zygote_py.ir import Lanes, components_of, is_left_out
from zygote_py.numba_adapter.base import internals, memory_of_arrays
from zygote_py.numba_adapter.base.internals import ConfigStack, Lower, eh, ir
from zygote_py.numba_adapter.emitted.lowering import record_lists
from zygote_py.numba_adapter.emitted.lowering.addresses import addresses_of
from zygote_py.numba_adapter.emitted.lowering.elements import (
    Apart,
    Fields,
    Parts,
    address,
    fields_of,
    has_one_form,
    is_element,
    is_matrix,
    items_of,
    note_never_negative,
    transposed,
    view_at,
)
from zygote_py.numba_adapter.emitted.lowering.lane_arithmetic import (
    address_of_lanes,
    is_zero_in_any,
    lanes_of_result,
    operate,
    store_lanes,
)
from zygote_py.numba_adapter.emitted.lowering.loop_hints import LoopHints, RepeatedAxes
from zygote_py.numba_adapter.emitted.lowering.native_calls import (
    copy_of,
    is_stored_here,
    native_call,
    of_complex_numbers,
    store_copy,
)
from zygote_py.numba_adapter.emitted.lowering.plain_calls import let_errors_pass, return_tuple
from zygote_py.numba_adapter.emitted.lowering.ranges import RangeLoops
from zygote_py.numba_adapter.emitted.lowering.record_lists import is_of_numbers, is_of_records
from zygote_py.numba_adapter.emitted.lowering.registers import (
    copies_of_arrays,
    index_of,
    kept_in_registers,
    returned_only,
    uncounted,
)
from zygote_py.numba_adapter.emitted.lowering.selection import select
from zygote_py.numba_adapter.emitted.lowering.stack_arrays import kept_on_stack

_COUNT = types.MemInfoPointer(types.voidptr)
NEVER_NEGATIVE = "zygote_py_never_negative"  # in the metadata of a function: the names of such variables
_HANDLERS = (eh.exception_check, eh.mark_try_block, eh.end_try_block)


_Lower: Any = Lower  # its methods have no types


class EmittedLower(_Lower):  # type: ignore[misc]
    """Lowers an emitted function."""

    def init(self) -> None:
        """Prepare."""
        self._counts: dict[Any, bool] = {}  # whether values of a type count references
        self._loops: RangeLoops | None = None
        self._hints: LoopHints | None = None
        self._repeated: RepeatedAxes | None = None
        self._uncounted: set[str] = set()
        self._returned: set[str] = set()  # tuples
        self._is_counting = True
        self._never_negative: Collection[str] = (self.metadata or {}).pop(NEVER_NEGATIVE, ())
        self._on_stack: set[int] = set()  # the calls that make small arrays on the stack
        self._apart: Apart | None = None
        self._copies: dict[str, str] = {}  # variables that hold copies of arrays, and those that hold the arrays
        super().init()
        self._implementations: dict[Any, Any] = {}
        self._fields: dict[str, Fields] = {}
        self._labels = {id(block): label for label, block in self.blocks.items()}

    def setup_function(self, fndesc: Any) -> None:
        """Begin the LLVM function."""
        super().setup_function(fndesc)
        self._let_errors_pass()

    def begin_function(self, function: Any) -> None:
        """Begin an LLVM function that has been declared."""
        self.function = function
        self.entry_block = function.append_basic_block("entry")
        self.builder = llvm.IRBuilder(self.entry_block)
        self.call_helper = self.call_conv.init_call_helper(self.builder)
        self._let_errors_pass()

    def _let_errors_pass(self) -> None:
        if not (self.func_ir.func_id.is_generator or _has_handlers(self.blocks)):
            let_errors_pass(self.function)

    def _find_singly_assigned_variable(self) -> None:
        if self.func_ir.func_id.is_generator or self._disable_sroa_like_opt or _has_handlers(self.blocks):
            super()._find_singly_assigned_variable()
            return
        kept = kept_in_registers(self.blocks, lambda name: self._counts_references(self.typeof(name)))
        self._singly_assigned_vars = kept
        self._blk_local_varmap: dict[str, Any] = {}
        self._loops = RangeLoops(self.blocks, kept, self.typeof)
        self._hints = LoopHints(self.blocks)
        flags: Any = ConfigStack.top_or_none()
        if flags is None or not flags.fastmath or {"fast", "afn"}.isdisjoint(flags.fastmath.flags):
            self._hints.keep_branches(self.typeof)
        self._repeated = RepeatedAxes(self.blocks, kept, select, self._hints)
        self._uncounted = uncounted(self.blocks, kept, self.typeof)
        if self._is_plain(self.fndesc.restype):
            self._returned = returned_only(self.blocks, kept, self.fndesc.restype, self.typeof)
        if not is_left_out("memory-apart"):
            self._apart = Apart(self.module, memory_of_arrays(self.blocks, self.typeof))
        self._copies = copies_of_arrays(self.blocks, kept)
        self._on_stack = kept_on_stack(self.func_ir.func_id.func, self.blocks, self.typeof, self.fndesc.calltypes)

    def _counts_references(self, kind: Any) -> bool:
        found = self._counts.get(kind)
        if found is None:
            found = self._counts[kind] = self.context.data_model_manager[kind].contains_nrt_meminfo()
        return found

    def incref(self, typ: Any, val: Any) -> None:
        """Count one reference more to what a value refers to."""
        if not self._is_counting:
            return
        for count in self._counts_of(typ, val):
            super().incref(_COUNT, count)

    def decref(self, typ: Any, val: Any) -> None:
        """Count one reference less."""
        for count in self._counts_of(typ, val):
            super().decref(_COUNT, count)

    def _counts_of(self, kind: Any, value: Any) -> Iterator[Any]:
        """Yield where references to the parts of a value are counted. Numba takes all parts of the value first."""
        if not self._counts_references(kind):
            return
        if isinstance(kind, types.BaseTuple) and (items := items_of(value, len(kind))) is not None:
            for part, item in zip(components_of(kind), items, strict=True):
                yield from self._counts_of(part, item)
            return
        model = self.context.data_model_manager[kind]
        if model.has_nrt_meminfo():
            yield model.get_nrt_meminfo(self.builder, value)
        for part, getter in model.traverse(self.builder):
            if self._counts_references(part):
                yield from self._counts_of(part, getter(value))

    def delvar(self, name: str) -> None:
        """Delete a variable. A value that counts no references has none to drop."""
        if name in self._uncounted:
            return
        if name not in self._singly_assigned_vars or self._counts_references(self.typeof(name)):
            super().delvar(name)

    def pre_block(self, block: Any) -> None:
        """Begin a block: what was computed in another may not be known in this one."""
        self._fields = {}
        self._label = self._labels.get(id(block), -1)
        super().pre_block(block)

    def loadvar(self, name: str) -> Any:
        """Return the value of a variable."""
        value = super().loadvar(name)
        if name in self._never_negative:
            note_never_negative(self.function, value)
        if name not in self._singly_assigned_vars and type(self.typeof(name)) is types.Array:
            addresses = addresses_of(self.function)
            if addresses is not None:
                addresses.note_variable(value, self.getvar(name))
        return value

    def lower_inst(self, inst: Any) -> None:
        """Lower a statement."""
        if (addresses := addresses_of(self.function)) is not None:
            addresses.begin_statement()
        if self._is_store_of_copy(inst):
            names = inst.target.name, inst.value.name
            kinds, values = tuple(map(self.typeof, names)), tuple(map(self.loadvar, names))
            store_copy(self.context, self.builder, kinds, values)
            return
        is_result = self._is_plain_result(inst)
        is_element = isinstance(inst, ir.StaticSetItem) and (
            self._is_element(inst.target, inst.index_var)
            or (type(self.typeof(inst.value.name)) is Lanes and isinstance(self.typeof(inst.target.name), types.Array))
        )
        if not is_result and not is_element:
            super().lower_inst(inst)
            if isinstance(inst, ir.Jump) and self._hints is not None:
                self._hints.tell(self.module, self.builder.block.terminator, self._label, inst.target)
            return
        self.debuginfo.mark_location(self.builder, self.loc.line)
        self.notify_loc(self.loc)
        if is_result:
            # Numba takes each part of the result out, and puts it in again.
            return_tuple(self.context, self.builder, self.fndesc.restype, self.loadvar(inst.value.name))
        else:
            # Numba looks for a function for this index first, and finds none for arrays.
            self.lower_setitem(inst.target, inst.index_var, inst.value, self.fndesc.calltypes[inst])

    def _is_store_of_copy(self, inst: Any) -> bool:
        """Return whether a statement is `array[:] = copy`, of a copy of that array."""
        if not isinstance(inst, ir.StaticSetItem) or inst.index != slice(None):
            return False
        target, value = inst.target.name, inst.value.name
        is_copy = self._copies.get(value) == target
        return is_copy and is_stored_here(self.typeof(target), self.typeof(value))

    def _is_plain_result(self, inst: Any) -> bool:
        """Return whether a statement returns a tuple in the form in which it is."""
        kind = self.fndesc.restype
        return isinstance(inst, ir.Return) and self.typeof(inst.value.name) == kind and self._is_plain(kind)

    def _is_plain(self, kind: Any) -> bool:
        return isinstance(kind, types.BaseTuple) and not self.generator_info and has_one_form(self.context, kind)

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """Return the value that a statement assigns."""
        if inst.target.name in self._uncounted:
            return self._lower_uncounted(ty, inst)
        if inst.target.name in self._returned:
            return self._lower_returned(ty, inst.value)
        found = None if self._loops is None else self._loops.lower(self, inst)
        return super().lower_assign(ty, inst) if found is None else found

    def _lower_returned(self, kind: Any, expr: Any) -> Parts:
        """Return the items of a tuple that is returned."""
        given = [(self.loadvar(each.name), self.typeof(each.name)) for each in expr.items]
        pairs = zip(given, components_of(kind), strict=True)
        parts = Parts([self.context.cast(self.builder, value, of, wanted) for (value, of), wanted in pairs])
        self.incref(kind, parts)
        return parts

    def _lower_uncounted(self, kind: Any, inst: Any) -> Any:
        """Return the value that is assigned to a variable that counts no reference."""
        value = inst.value
        if not isinstance(value, ir.Expr):
            self._is_counting = False
            try:
                return super().lower_assign(kind, inst)
            finally:
                self._is_counting = True
        owner, owner_kind = self.loadvar(value.value.name), self.typeof(value.value.name)
        if value.op == "getattr":
            owner = self.context.cast(self.builder, owner, owner_kind, kind.this)
            return self.context.get_bound_function(self.builder, owner, kind.this)
        index = index_of(value).name
        return view_at(self.context, self.builder, kind, owner_kind, owner, self.typeof(index), self.loadvar(index))

    def _is_element(self, array: Any, index: Any) -> bool:
        return index is not None and is_element(self.typeof(array.name), self.typeof(index.name))

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Lower an expression."""
        if expr.op == "static_getitem" and self._is_element(expr.value, expr.index_var):
            return self.lower_getitem(resty, expr, expr.value, expr.index_var, self.fndesc.calltypes[expr])
        if expr.op == "static_getitem" and isinstance(kind := self.typeof(expr.value.name), types.BaseTuple):
            return self._lower_item(resty, expr, kind)
        if expr.op == "unary" and type(resty) is Lanes:
            return operate(expr.fn, [resty])(self.builder, [self.loadvar(expr.value.name)])
        if expr.op == "build_list" and is_of_records(self.context, resty):
            record_lists.define_destructor(self.context, self.module, resty)
        if expr.op == "build_list" and not expr.items and record_lists.is_made_here(self.context, resty):
            return record_lists.made_empty(self.context, self.builder, resty)
        if expr.op == "getattr" and expr.attr == "T" and is_matrix(kind := self.typeof(expr.value.name)):
            found = transposed(self.context, self.builder, kind, self.loadvar(expr.value.name))
            self.incref(resty, found)
            return found
        return super().lower_expr(resty, expr)

    def _lower_item(self, resty: Any, expr: Any, kind: Any) -> Any:
        """Lower `record[1]`."""
        record, index = self.loadvar(expr.value.name), expr.index
        if isinstance(index, int) and -len(kind) <= index < len(kind) and list(kind)[index] == resty:
            items = items_of(record, len(kind))
            if items is not None:
                self.incref(resty, items[index])
                return items[index]
        found = super().lower_expr(resty, expr)
        record_lists.note_item(self.builder, record, found)
        return found

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """Lower `value[index]`."""
        array = self.typeof(value.name)
        if not (is_element(array, signature.args[1]) and signature.args[0] == array):
            return super().lower_getitem(resty, expr, value, index, signature)
        place = self._address(value, array, index, signature.args[1])
        with self._noted(value.name):
            found = internals.load_item(self.context, self.builder, array, place)
        return self.context.cast(self.builder, found, signature.return_type, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Lower `target_var[index_var] = value_var`."""
        array, given = self.typeof(target_var.name), self.typeof(value_var.name)
        if type(given) is Lanes and isinstance(array, types.Array):
            fields = fields_of(self.context, self.builder, array, self.loadvar(target_var.name))
            index = self.typeof(index_var.name), self.loadvar(index_var.name)
            place = address_of_lanes(self.context, self.builder, array, fields, *index)
            store_lanes(self.builder, given, self.loadvar(value_var.name), place)
            return None
        is_scalar = isinstance(signature.args[2], types.Number | types.Boolean)
        if not (is_scalar and is_element(array, signature.args[1]) and signature.args[0] == array):
            return super().lower_setitem(target_var, index_var, value_var, signature)
        place = self._address(target_var, array, index_var, signature.args[1])
        value = self.context.cast(self.builder, self.loadvar(value_var.name), given, signature.args[2])
        value = self.context.cast(self.builder, value, signature.args[2], array.dtype)
        with self._noted(target_var.name):
            internals.store_item(self.context, self.builder, array, value, place)
        return None

    @contextmanager
    def _noted(self, array: str) -> Iterator[None]:
        """Note with the accesses written meanwhile, which are of one block, which memory they are to."""
        instructions = self.builder.block.instructions
        count = len(instructions)
        yield
        if self._apart is not None:
            self._apart.note(array, instructions[count:])

    def _address(self, array: Any, kind: Any, index: Any, index_type: Any) -> Any:
        name = array.name
        fields = self._fields.get(name)
        if fields is None:
            fields = fields_of(self.context, self.builder, kind, self.loadvar(name))
            if name in self._singly_assigned_vars:
                self._fields[name] = fields
        value = self.context.cast(self.builder, self.loadvar(index.name), self.typeof(index.name), index_type)
        return address(self.context, self.builder, kind, fields, index_type, value, self._steps(index.name, kind.ndim))

    def _steps(self, index: str, count: int) -> dict[int, tuple[Any, Any]]:
        """Return the items of an index that are zero unless a condition holds: by axis, the index and its step."""
        found: dict[int, tuple[Any, Any]] = {}
        if self._repeated is not None:
            for axis, item in enumerate(self._repeated.items(index, count)):
                names = self._repeated.condition(item, self._label)
                if names is None or tuple(map(self.typeof, names)) != (types.boolean, types.intp):
                    continue
                condition, whole = map(self.loadvar, names)
                if isinstance(condition, llvm.Instruction) and not isinstance(condition, llvm.PhiInstr):
                    found[axis] = whole, self._repeated.step(self.builder, condition)
        return found

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """Lower an operation on two values."""
        if not (expr.static_lhs is ir.UNDEFINED and expr.static_rhs is ir.UNDEFINED):
            return super().lower_binop(resty, expr, op)
        signature, context, builder = self.fndesc.calltypes[expr], self.context, self.builder
        if (several := lanes_of_result(op, signature.args)) is not None:
            if op is operator.truediv:
                divisor = self.loadvar(expr.rhs.name)
                with internals.cgutils.if_unlikely(builder, is_zero_in_any(builder, several, divisor)):
                    context.error_model.fp_zero_division(builder, ("division by zero",), self.loc)
            return operate(op, signature.args)(builder, [self.loadvar(each.name) for each in (expr.lhs, expr.rhs)])
        if op is operator.add and (items := self._joined(resty, expr)) is not None:
            whole = context.make_tuple(builder, resty, items)
            self.incref(resty, whole)
            return whole
        values = [
            context.cast(builder, self.loadvar(each.name), self.typeof(each.name), kind)
            for each, kind in zip((expr.lhs, expr.rhs), signature.args, strict=True)
        ]
        if (number := of_complex_numbers(builder, op, signature.args, values)) is not None:
            return context.cast(builder, number, signature.return_type, resty)
        key = op, signature.args
        implementation = self._implementations.get(key)
        if implementation is None:
            typing = context.typing_context
            function = typing.resolve_value_type(op)
            found = function.get_call_type(typing, signature.args, {})
            implementation = self._implementations[key] = context.get_function(function, found)
        return context.cast(builder, implementation(builder, values), signature.return_type, resty)

    def _joined(self, kind: Any, expr: Any) -> list[Any] | None:
        """Return the items of a sum of tuples, a display of many; None if it is another sum."""
        parts = [self.typeof(each.name) for each in (expr.lhs, expr.rhs)]
        if not all(isinstance(each, types.BaseTuple) for each in (*parts, kind)):
            return None
        if [type for part in parts for type in part] != list(kind):
            return None
        items = [
            items_of(self.loadvar(each.name), len(part)) for each, part in zip((expr.lhs, expr.rhs), parts, strict=True)
        ]
        return None if items[0] is None or items[1] is None else [*items[0], *items[1]]

    def _lower_call_normal(self, fnty: Any, expr: Any, signature: Any) -> Any:
        if isinstance(fnty, types.BoundFunction) and (
            is_of_records(self.context, signature.recvr) or is_of_numbers(self.context, signature.recvr)
        ):
            done, result = self._lower_change(str(fnty.typing_key), expr, signature)
            if done:
                return result
        if isinstance(fnty, types.BoundFunction) and fnty.typing_key == "array.copy":
            typed = copy_of(signature.recvr)
            if typed is not None and typed.signature.return_type == signature.return_type:
                return typed.lower(self.context, self.builder, typed.signature, [self.loadvar(expr.func.name)])
        on_stack = id(expr) in self._on_stack
        native = (
            None if expr.kws or expr.vararg or expr.target else native_call(fnty, signature.args, on_stack=on_stack)
        )
        if native is None or native.signature != signature:
            return super()._lower_call_normal(fnty, expr, signature)
        args = self.fold_call_args(fnty, signature, expr.args, expr.vararg, expr.kws)
        return native.lower(self.context, self.builder, signature, args)

    def _lower_change(self, method: str, expr: Any, signature: Any) -> tuple[bool, Any]:
        """Lower a call of a method of a list of records. Return whether it is lowered here, and the result."""
        kind, records = signature.recvr, self.loadvar(expr.func.name)
        if expr.kws or expr.vararg:
            return False, None
        if method == "list.append" and signature.args == (kind.dtype,):
            (record,) = self.fold_call_args(self.typeof(expr.func.name), signature, expr.args, expr.vararg, expr.kws)
            if is_of_numbers(self.context, kind):
                record_lists.append_number(self.context, self.builder, kind, records, record)
            else:
                record_lists.append(self.context, self.builder, kind, records, record)
                self.incref(kind.dtype, record)
            return True, self.context.get_dummy_value()
        if method == "list.pop" and not signature.args:
            pop = record_lists.pop_number if is_of_numbers(self.context, kind) else record_lists.pop
            return True, pop(self.context, self.builder, kind, records)
        return False, None


def _has_handlers(blocks: Any) -> bool:
    """Return whether there are `try` statements, which are left from within any statement."""
    values = (each.value for block in blocks.values() for each in block.find_insts(ir.Assign))
    globals_ = (each.value for each in values if isinstance(each, ir.Global | ir.FreeVar))
    return any(each is handler for each in globals_ for handler in _HANDLERS)
