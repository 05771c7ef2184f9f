"""Types and live variables are those of Numba's own passes, found sooner."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, types
from numba.core import analysis, compiler, errors, ir, typeinfer
from numba.core.registry import cpu_target
from numba.core.typed_passes import NopythonTypeInference

from zygote_py.numba_adapter.base import propagating_changes, quick_liveness


def widened(x, n):
    total = 0
    last = 1
    for i in range(n):
        if i > 2:
            last = total
        total = last + x * i
    return total, last


def refined_list(x, n):
    found = []
    for i in range(n):
        if i == 3:
            found.append(x)
        else:
            found.append(i)
    return found


def refined_by_a_later_loop(x, n):
    a = []
    b = a
    for i in range(n):
        if i > 1:
            a.append(x)
    b.append(1)
    return b


def carried(x, n):
    a = b = c = d = 0
    for _ in range(n):
        a, b, c, d = b, c, d, x
        for _ in range(2):
            a, b = b, a
    return a, b, c, d


def of_arrays(x, n):
    a = np.zeros(n)
    shape = (n, 2)
    m = np.empty(shape)
    for i in range(n):
        m[i] = a[i] + x
        a[i : i + 1] = m[i, 0]
    return a.sum() + m.T @ a


def recursive(x, n):
    if n == 0:
        return x
    return recursive(x, n - 1) * 2


recursive = njit(recursive)


def calling(x, n):
    y = 0
    for i in range(n):
        y = recursive(y + x, i)
    return y


PROGRAMS = [widened, refined_list, refined_by_a_later_loop, carried, of_arrays, calling]


def typed(program):
    """Return the types of all variables of a program, the signatures of its calls and the type of its result."""
    found = {}

    class Front(compiler.Compiler):
        def _compile_core(self):
            whole = self.define_pipelines()[0]
            kept = compiler.PassManager("front")
            for step, description in whole.passes:
                kept.add_pass(step, description)
                if step is NopythonTypeInference:
                    break
            kept.finalize()
            kept.run(self.state)
            found["types"] = dict(self.state.typemap)
            found["calls"] = [str(each) for each in self.state.calltypes.values()]
            found["result"] = self.state.return_type

    flags = compiler.Flags()
    flags.nrt = True
    context = cpu_target.typing_context, cpu_target.target_context
    run = Front(*context, None, (types.float64, types.int64), None, flags, {})
    context[0].refresh()
    context[1].refresh()
    run.compile_extra(program)
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_types_are_those_of_numba(program):
    given = typed(program)
    with propagating_changes():
        assert typeinfer.ConstraintNetwork.__module__.startswith("zygote_py")
        found = typed(program)
    assert typeinfer.ConstraintNetwork.__module__ == "numba.core.typeinfer"
    assert found == given


def undecided(x, n):
    return [] if n > 2 else x


def untyped_list(x, n):
    return len([])


def missing(x, n):
    return x.nothing + n


@pytest.mark.parametrize("program", [undecided, untyped_list, missing], ids=lambda each: each.__name__)
def test_errors_are_those_of_numba(program):
    with pytest.raises(errors.NumbaError) as given:
        typed(program)
    with propagating_changes(), pytest.raises(errors.NumbaError) as found:
        typed(program)
    assert str(found.value) == str(given.value)


def test_constraints_are_not_evaluated_again_without_need():
    counts = []
    for within in (False, True):
        count = [0]
        evaluate = typeinfer.IntrinsicCallConstraint.__call__

        def counted(self, inferer, count=count, evaluate=evaluate):
            count[0] += 1
            evaluate(self, inferer)

        typeinfer.IntrinsicCallConstraint.__call__ = counted
        try:
            if within:
                with propagating_changes():
                    typed(carried)
                    typed(of_arrays)
            else:
                typed(carried)
                typed(of_arrays)
        finally:
            typeinfer.IntrinsicCallConstraint.__call__ = evaluate
        counts.append(count[0])
    assert counts[1] < 0.7 * counts[0]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_lifetimes_are_those_of_numba(program):
    blocks = compiler.run_frontend(getattr(program, "py_func", program)).blocks
    cfg = analysis.compute_cfg_from_blocks(blocks)
    used, defined = analysis.compute_use_defs(blocks)

    def lifetimes():
        live = analysis.compute_live_map(cfg, blocks, used, defined)
        dead = analysis.compute_dead_maps(cfg, blocks, live, defined)
        return live, dead, analysis.compute_live_variables(cfg, blocks, defined, dead.combined)

    live, dead, available = lifetimes()
    with quick_liveness():
        assert analysis.compute_live_map.__module__.startswith("zygote_py")
        found, found_dead, found_available = lifetimes()
    assert {label: found[label] for label in blocks} == live
    assert {label: set(found_available[label]) for label in blocks} == {label: available[label] for label in blocks}
    for ours, theirs in zip(found_dead, dead, strict=True):
        assert {label: ours[label] for label in blocks} == {label: theirs[label] for label in blocks}
    assert any(dead.combined.values())


def test_lifetimes_that_numba_has_begun_to_find_are_found_by_it():
    blocks = compiler.run_frontend(widened).blocks
    cfg = analysis.compute_cfg_from_blocks(blocks)
    used, defined = analysis.compute_use_defs(blocks)
    live = analysis.compute_live_map(cfg, blocks, used, defined)
    dead = analysis.compute_dead_maps(cfg, blocks, live, defined)
    with quick_liveness():
        assert analysis.compute_dead_maps(cfg, blocks, live, defined) == dead
        available = analysis.compute_live_variables(cfg, blocks, defined, dead.combined)
    assert available == analysis.compute_live_variables(cfg, blocks, defined, dead.combined)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_the_variables_of_statements_are_those_of_numba(program):
    blocks = compiler.run_frontend(getattr(program, "py_func", program)).blocks
    statements = [each for block in blocks.values() for each in block.body]
    given = [each.list_vars() for each in statements]
    listing = ir.Inst._rec_list_vars
    with quick_liveness():
        assert ir.Inst._rec_list_vars is not listing
        assert [each.list_vars() for each in statements] == given
    assert ir.Inst._rec_list_vars is listing
    assert any(given)
