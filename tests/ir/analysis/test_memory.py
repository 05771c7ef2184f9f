import pytest

from zygote_py.ir import Block, Const, Function, Instr, InternalError, Jump, Memory, parse

STORES = """function f(%x: f64[:], %z: f64[:], %i: i64) -> f64
b0:
  %a = getitem %x, %i : f64
  setitem %z, %a, %i
  %b = getitem %x, %i : f64
  setitem %x, %a, %i
  %c = getitem %x, %i : f64
  return %c
"""


def instructions(function: Function) -> list[Instr]:
    return [instr for instr in function.entry.instrs if isinstance(instr, Instr)]


def test_what_is_written_between_two_instructions():
    (function,) = parse(STORES)
    memory = Memory(function)
    x, z, _ = function.params
    a, _, b, into_x, c = instructions(function)
    with memory.order_of(function.entry) as order:
        assert not order.writes_between(a, b, x)
        assert order.writes_between(a, b, z)
        assert order.writes_between(b, c, x)
        assert not order.writes_between(into_x, c, x)
        assert order.writes_since(into_x, c, x)
        assert not order.writes_since(into_x, c, z)
        assert a in order
        assert x not in order
    assert not memory.may_be_written_after(b, (z,))
    assert memory.may_be_written_after(a, (z,))
    assert memory.may_be_written_after(b, (x,))
    assert not memory.may_be_written_after(into_x, (x,))
    assert not memory.may_be_written_after(c)


def test_a_block_whose_order_is_asked_for_may_not_change():
    (function,) = parse(STORES)
    block = function.entry
    memory = Memory(function)
    added = Instr(instructions(function)[0].op, instructions(function)[0].args, instructions(function)[0].type)
    with pytest.raises(InternalError, match="has changed"), memory.order_of(block):
        block.instrs.insert(1, added)
    with pytest.raises(InternalError, match="has changed"), memory.order_of(block):
        pass
    block.instrs.remove(added)
    with memory.order_of(block) as order:
        order.writes_between(*instructions(function)[:2], function.params[0])
    block.instrs[1:3] = block.instrs[2:0:-1]
    with pytest.raises(InternalError, match="has changed"), memory.order_of(block):
        pass
    with pytest.raises(InternalError, match="has changed"), memory.order_of(Block()):
        pass


def test_nothing_is_said_of_what_was_made_later():
    (function,) = parse(STORES)
    memory = Memory(function)
    first = instructions(function)[0]
    x, _, i = function.params
    later = Instr(first.op, (x, i), x.type, "late")
    for ask in (
        lambda: memory.root(later),
        lambda: memory.may_share(x, later),
        lambda: memory.writers(later),
        lambda: memory.may_be_written_after(later, (x,)),
    ):
        with pytest.raises(InternalError, match="`late` was created after"):
            ask()
    with memory.order_of(function.entry) as order, pytest.raises(InternalError, match="`late` is not in the block"):
        order.writes_between(first, later, x)
    assert memory.root(Const(1.0, first.type)) is None


MADE_ANEW = """function f(%n: i64) -> f64
b0:
  jump b1
b1:
  %k: i64 = phi b0: 0, b2: %k2
  %c = lt %k, %n : bool
  branch %c, b2, b3
b2:
  %w = zeros 3 : f64[:]
  %first = getitem %w, 0 : f64
  setitem %w, 2.0, %k
  %last = getitem %w, 1 : f64
  %k2 = add %k, 1 : i64
  jump b1
b3:
  return 0.0
"""


def test_an_array_that_each_iteration_makes_is_another_one():
    (function,) = parse(MADE_ANEW)
    memory = Memory(function)
    body = function.blocks[2]
    _, first, _, last, _ = body.instrs
    assert isinstance(first, Instr)
    assert isinstance(last, Instr)
    assert memory.may_be_written_after(first)
    assert not memory.may_be_written_after(last)


def test_what_has_been_added_to_a_block_since_does_not_count():
    """Neither phis nor instructions: the places of before are of the block of before."""
    (function,) = parse(MADE_ANEW)
    memory = Memory(function)
    body = function.blocks[2]
    made, first, store, *_ = body.instrs
    assert isinstance(first, Instr)
    body.instrs[:0] = [Instr(first.op, first.args, first.type) for _ in range(2)]
    assert memory.may_be_written_after(first)
    body.instrs.remove(store)
    body.terminator = Jump(function.blocks[3])
    assert memory.may_be_written_after(first)
    assert made in body.instrs
