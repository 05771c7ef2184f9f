import pytest
from numba import types

from tests.ir.transform import read
from zygote_py.ir import CLEAN_UP, Const, InternalError, run
from zygote_py.ir.passes import fold_constants, merge_blocks

SOURCE = "b0:\n  jump b1\nb1:\n  %t = mul %x, 1.0 : f64\n  return %t"


def test_a_dump_after_each_pass_or_some(monkeypatch, capsys):
    monkeypatch.setenv("ZYGOTE_PY_DUMP", "all")
    run(read(SOURCE), CLEAN_UP)
    assert capsys.readouterr().err.count("--- f after ") >= len(set(CLEAN_UP))
    monkeypatch.setenv("ZYGOTE_PY_DUMP", "merge_blocks")
    run(read(SOURCE), (fold_constants, merge_blocks))
    assert capsys.readouterr().err.splitlines()[:3] == [
        "--- f after merge_blocks",
        "function f(%x: f64, %y: f64, %n: i64, %p: bool) -> f64",
        "b0:",
    ]
    monkeypatch.delenv("ZYGOTE_PY_DUMP")
    run(read(SOURCE), CLEAN_UP)
    assert capsys.readouterr().err == ""


def test_a_pass_that_breaks_the_function_is_named(monkeypatch):
    def break_it(function):
        function.blocks[0].instrs.append(function.blocks[1].instrs[0])

    monkeypatch.setenv("ZYGOTE_PY_VERIFY", "1")
    with pytest.raises(InternalError, match="after break_it"):
        run(read(SOURCE), (break_it, merge_blocks))


def test_a_pass_is_left_out_until_another_has_changed_something():
    ran = []

    def noted(step):
        def within(function):
            ran.append(step.__name__)
            step(function)

        return within

    def negate(function):  # in place
        (t,) = function.blocks[0].instrs
        t.args = (t.args[0], Const(-1.0, types.float64))

    fold, merge, negate = map(noted, (fold_constants, merge_blocks, negate))
    source = "b0:\n  jump b1\nb1:\n  %t = mul %x, 2.0 : f64\n  return %t"
    run(read(source), (fold, merge, fold, merge, merge, fold, negate, merge, fold))
    assert ran == [
        *("fold_constants", "merge_blocks"),  # which changes something
        *("fold_constants", "merge_blocks"),
        "negate",
        *("merge_blocks", "fold_constants"),
    ]
