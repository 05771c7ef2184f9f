"""Functions in IR text, each for one behaviour of the emission, with arguments to call them with."""

from __future__ import annotations

SWAP = """
function swap(%n: i64, %x: f64, %y: f64) -> f64
b0:
  jump b1
b1:
  %i0: i64 = phi b0: 0,  b2: %i1
  %a: f64  = phi b0: %x, b2: %b
  %b: f64  = phi b0: %y, b2: %a
  %c = lt %i0, %n : bool
  branch %c, b2, b3
b2:
  %i1 = add %i0, 1 : i64
  jump b1
b3:
  %d = mul %a, 10.0 : f64
  %e = add %d, %b : f64
  return %e
"""

ROTATION = """
function rotation(%n: i64, %x: f64) -> f64
b0:
  jump b1
b1:
  %i0: i64 = phi b0: 0,   b2: %i1
  %a: f64  = phi b0: %x,  b2: %b
  %b: f64  = phi b0: 2.0, b2: %c
  %c: f64  = phi b0: 3.0, b2: %a
  %d: f64  = phi b0: 4.0, b2: %a
  %t0 = lt %i0, %n : bool
  branch %t0, b2, b3
b2:
  %i1 = add %i0, 1 : i64
  jump b1
b3:
  %t1 = mul %a, 10.0 : f64
  %t2 = add %t1, %b : f64
  %t3 = mul %t2, 10.0 : f64
  %t4 = sub %t3, %c : f64
  %t5 = mul %t4, 10.0 : f64
  %t6 = sub %t5, %d : f64
  return %t6
"""

LOST_COPY = """
function lost_copy(%x: f64, %n: i64) -> f64
b0:
  jump b1
b1:
  %r0: f64 = phi b0: %x, b1: %r1
  %i0: i64 = phi b0: 0, b1: %i1
  %r1 = mul %r0, 2.0 : f64
  %i1 = add %i0, 1 : i64
  %c = lt %i1, %n : bool
  branch %c, b1, b2
b2:
  %t = sub %r1, %r0 : f64
  return %t
"""

FIBONACCI = """
function fibonacci(%n: i64) -> i64
b0:
  jump b1
b1:
  %a: i64  = phi b0: 0,  b2: %b
  %b: i64  = phi b0: 1,  b2: %s
  %i0: i64 = phi b0: %n, b2: %i1
  %c = gt %i0, 0 : bool
  branch %c, b2, b3
b2:
  %s = add %a, %b : i64
  %i1 = sub %i0, 1 : i64
  jump b1
b3:
  return %a
"""

SHORT_CIRCUIT = """
function short_circuit(%a: f64, %b: f64) -> f64
b0:
  %t0 = gt %a, 0.0 : bool
  branch %t0, b1, b3
b1:
  %t1 = lt %b, 0.0 : bool
  branch %t1, b3, b2
b2:
  %y0 = mul %a, %b : f64
  jump b4
b3:
  %y1 = sub %a, %b : f64
  jump b4
b4:
  %y2: f64 = phi b2: %y0, b3: %y1
  return %y2
"""

SHARED_ARM = """
function shared_arm(%a: f64, %b: f64, %x: f64[:]) -> none
b0:
  %c0 = gt %a, 0.0 : bool
  branch %c0, b1, b2
b1:
  %c1 = gt %b, 0.0 : bool
  branch %c1, b2, b3
b2:
  setitem %x, 1.0, 0
  jump b3
b3:
  return none
"""

GUARDS = """
function guards(%a: f64, %b: f64, %x: f64[:]) -> f64
b0:
  %t0 = gt %a, 0.0 : bool
  branch %t0, b1, b4
b1:
  setitem %x, %a, 0
  %t1 = gt %b, 0.0 : bool
  branch %t1, b2, b4
b2:
  setitem %x, %b, 1
  %t2 = gt %a, %b : bool
  branch %t2, b3, b5
b3:
  setitem %x, 1.0, 2
  jump b6
b4:
  %y0: f64 = phi b0: %a, b1: %b
  setitem %x, 2.0, 2
  jump b5
b5:
  %y1: f64 = phi b2: 1.5, b4: %y0
  setitem %x, 3.0, 3
  jump b6
b6:
  %y2: f64 = phi b3: 2.5, b5: %y1
  return %y2
"""

TRIANGLE = """
function triangle(%x: f64[:, :], %n: i64) -> f64
b0:
  jump b1
b1:
  %s0: f64 = phi b0: 0.0, b5: %s1
  %i0: i64 = phi b0: 0, b5: %i1
  %c0 = lt %i0, %n : bool
  branch %c0, b2, b6
b2:
  %a = add %i0, 1 : i64
  jump b3
b3:
  %s1: f64 = phi b2: %s0, b4: %s2
  %j0: i64 = phi b2: %a, b4: %j1
  %c1 = le %j0, %n : bool
  branch %c1, b4, b5
b4:
  %t0 = getitem %x, %i0, %j0 : f64
  %t1 = float %i0 : f64
  %t2 = mul %t0, %t1 : f64
  %s2 = add %s1, %t2 : f64
  %j1 = add %j0, 2 : i64
  jump b3
b5:
  %i1 = add %i0, 1 : i64
  jump b1
b6:
  return %s0
"""

BACKWARDS = """
function backwards(%x: f64[:]) -> f64
b0:
  %n = dim %x, 0 : i64
  %m = sub %n, 1 : i64
  jump b1
b1:
  %i0: i64 = phi b0: %m, b2: %i1
  %s0: f64 = phi b0: 0.0, b2: %s1
  %c = ge %i0, 0 : bool
  branch %c, b2, b3
b2:
  %t = getitem %x, %i0 : f64
  %s1 = sub %t, %s0 : f64
  %i1 = sub %i0, 1 : i64
  jump b1
b3:
  return %s0
"""

USED_AFTER = """
function used_after(%n: i64, %k: i64) -> i64
b0:
  jump b1
b1:
  %i0: i64 = phi b0: %k, b2: %i1
  %c = lt %i0, %n : bool
  branch %c, b2, b3
b2:
  %i1 = add %i0, 3 : i64
  jump b1
b3:
  return %i0
"""

SHRINKING_BOUND = """
function shrinking_bound(%n: i64) -> i64
b0:
  jump b1
b1:
  %i0: i64 = phi b0: 0, b2: %i1
  %n1: i64 = phi b0: %n, b2: %n2
  %c = lt %i0, %n : bool
  branch %c, b2, b3
b2:
  %n2 = sub %n1, 1 : i64
  %i1 = add %i0, 1 : i64
  jump b1
b3:
  return %n1
"""

STATEMENTS_IN_HEADER = """
function statements_in_header(%x: f64[:]) -> f64
b0:
  jump b1
b1:
  %i0: i64 = phi b0: 0, b2: %i1
  %y = getitem %x, %i0 : f64
  setitem %x, 0.0, %i0
  %c = lt %y, 2.0 : bool
  branch %c, b2, b3
b2:
  %i1 = add %i0, 1 : i64
  jump b1
b3:
  return %y
"""

FLOAT32 = """
function float32(%x: f32, %n: i64) -> f32
b0:
  jump b1
b1:
  %i0: i64 = phi b0: 0, b2: %i1
  %r0: f32 = phi b0: f32(0.1), b2: %r1
  %c = lt %i0, %n : bool
  branch %c, b2, b3
b2:
  %t0 = mul %r0, %x : f32
  %t1 = np.float32 %i0 : f32
  %t2 = mul %t1, f32(-0.3) : f32
  %r1 = add %t0, %t2 : f32
  %i1 = add %i0, 1 : i64
  jump b1
b3:
  return %r0
"""

SLOT = """
function slot(%x: f64, %n: i64) -> f64
b0:
  %c0 = gt %n, 0 : bool
  branch %c0, b1, b2
b1:
  %s0 = mul %x, %x : f64
  jump b2
b2:
  %s1: f64 = phi b0: undef, b1: %s0
  %c1 = gt %n, 1 : bool
  branch %c1, b3, b4
b3:
  %x1 = add %x, 1.0 : f64
  jump b4
b4:
  %s2: f64 = phi b2: %s1, b3: %s1
  %x2: f64 = phi b2: %x, b3: %x1
  branch %c0, b5, b6
b5:
  %t = add %s2, %x2 : f64
  jump b6
b6:
  %y: f64 = phi b4: %x2, b5: %t
  return %y
"""

UNSET_AND_COPIED = """
function unset_and_copied(%x: f64, %n: i64) -> f64
b0:
  jump b1
b1:
  %i0: i64  = phi b0: 0,     b4: %i1
  %u: f64   = phi b0: undef, b4: %v
  %last: f64 = phi b0: undef, b4: %u
  %y0: f64  = phi b0: 0.0,   b4: %y1
  %c0 = lt %i0, %n : bool
  branch %c0, b2, b5
b2:
  %c1 = gt %i0, 1 : bool
  branch %c1, b3, b4
b3:
  %t0 = sub %u, %last : f64
  jump b4
b4:
  %y1: f64 = phi b2: %y0, b3: %t0
  %t1 = float %i0 : f64
  %t2 = mul %t1, %t1 : f64
  %v = mul %t2, %x : f64
  %i1 = add %i0, 1 : i64
  jump b1
b5:
  return %y0
"""

CHECKED = """
function checked(%x: f64, %n: i64) -> f64
b0:
  %c0 = lt %n, 0 : bool
  branch %c0, b1, b2
b1:
  raise ValueError "n is negative"
b2:
  %c1 = eq %x, 0.0 : bool
  branch %c1, b3, b4
b3:
  raise ZeroDivisionError
b4:
  %t = truediv 1.0, %x : f64
  return %t
"""

STACKS = """
function stacks(%x: f64[:]) -> f64
b0:
  %n = dim %x, 0 : i64
  %tape = stack : list((f64, i64))
  %r = record %n : f64[:]
  jump b1
b1:
  %i0: i64 = phi b0: 0, b2: %i1
  %c0 = lt %i0, %n : bool
  branch %c0, b2, b3
b2:
  %t0 = getitem %x, %i0 : f64
  %t1 = pack %t0, %i0 : (f64, i64)
  push %tape, %t1
  setitem %r, %t0, %i0
  %i1 = add %i0, 1 : i64
  jump b1
b3:
  jump b4
b4:
  %i2: i64 = phi b3: 0, b5: %i3
  %d0: f64 = phi b3: 0.0, b5: %d1
  %c1 = lt %i2, %n : bool
  branch %c1, b5, b6
b5:
  %p = pop %tape : (f64, i64)
  %v = getitem %p, 0 : f64
  %k = getitem %p, 1 : i64
  accumulate %r, %v, %k
  %t2 = getitem %r, %k : f64
  %t3 = neg %t2 : f64
  accumulate %x, %t3, %i2
  %t4 = mul %v, %t2 : f64
  %t5 = neg %t4 : f64
  %d1 = add %d0, %t5 : f64
  %i3 = add %i2, 1 : i64
  jump b4
b6:
  return %d0
"""

NESTED_STACKS = """
function nested_stacks(%x: f64[:], %n: i64) -> f64
b0:
  %none = stack : list(list(f64[:]A))
  %c0 = lt 0, %n : bool
  branch %c0, b1, b2
b1:
  %made = stack : list(list(f64[:]A))
  %inner = stack : list(f64[:]A)
  push %inner, %x
  push %made, %inner
  jump b2
b2:
  %outer: list(list(f64[:]A)) = phi b0: %none, b1: %made
  branch %c0, b3, b4
b3:
  %popped = pop %outer : list(f64[:]A)
  %array = pop %popped : f64[:]A
  %t = getitem %array, %n : f64
  jump b4
b4:
  %y: f64 = phi b2: 1.0, b3: %t
  return %y
"""

ARRAYS = """
function arrays(%x: f64[:, :], %i: i64) -> f64
b0:
  %t0 = dim %x, 1 : i64
  %t1 = range_length 0, %t0, 2 : i64
  %t2 = slice 0, %t1 : none
  %v = getitem %x, %i, %t2 : f64[:]
  %t3 = slice none, none : none
  %w = getitem %x, %t3, 0 : f64[:]A
  %t4 = getitem %v, 0 : f64
  %t5 = getitem %w, 1 : f64
  %t6 = gt %t4, %t5 : bool
  %t7 = select %t6, %t4, %t5 : f64
  %t8 = pick %i, %t7, 2.0, 3.0 : f64
  %t9 = np.maximum %t8, 0.5 : f64
  return %t9
"""

CONSTANTS = """
function constants(%x: f64) -> f64
b0:
  %a = mul %x, -2.0 : f64
  %b = pow -2.0, %a : f64
  %c = add %b, -0.0 : f64
  %d = sub %c, inf : f64
  %e = mul %d, -inf : f64
  %f = select True, %e, nan : f64
  %g = add i32(7), 3 : i64
  %h = float %g : f64
  %i = truediv %f, %h : f64
  %j = neg %i : f64
  %k = pow %j, 2.0 : f64
  return %k
"""

NAMES = """
function names(%math: f64, %max: f64, %np: f64, %len: f64, %x: f64[:]) -> f64
b0:
  %t0 = math.sin %math : f64
  %t1 = max %max, %t0 : f64
  %t2 = np.exp2 %np : f64
  %def = mul %t1, %t2 : f64
  %n = dim %x, 0 : i64
  %t3 = float %n : f64
  %range = mul %def, %t3 : f64
  %t4 = mul %range, %def : f64
  %names = mul %t4, %len : f64
  %t5 = add %names, %range : f64
  return %t5
"""

NEGATED = """
function negated(%x: f64, %n: i64) -> f64
b0:
  %c0 = lt %x, 2.0 : bool
  branch %c0, b2, b1
b1:
  jump b2
b2:
  %y0: f64 = phi b0: 1.0, b1: %x
  %c1 = lt %n, 2 : bool
  branch %c1, b4, b3
b3:
  %y1 = mul %y0, 3.0 : f64
  jump b4
b4:
  %y2: f64 = phi b2: %y0, b3: %y1
  return %y2
"""

BREAKS = """
function breaks(%x: f64[:], %n: i64) -> f64
b0:
  jump b1
b1:
  %i0: i64 = phi b0: 0, b7: %i1
  %s0: f64 = phi b0: 0.0, b7: %s1
  %c0 = lt %i0, %n : bool
  branch %c0, b2, b8
b2:
  jump b3
b3:
  %j0: i64 = phi b2: 0, b6: %j1
  %s1: f64 = phi b2: %s0, b6: %s2
  %c1 = lt %j0, %n : bool
  branch %c1, b4, b7
b4:
  %t = getitem %x, %j0 : f64
  %s2 = add %s1, %t : f64
  %c2 = gt %s2, 10.0 : bool
  branch %c2, b8, b5
b5:
  %c3 = gt %s2, 5.0 : bool
  branch %c3, b7, b6
b6:
  %j1 = add %j0, 1 : i64
  jump b3
b7:
  %i1 = add %i0, 1 : i64
  jump b1
b8:
  %s3: f64 = phi b1: %s0, b4: %s2
  return %s3
"""

EMPTY = """
function empty(%n: i64) -> none
b0:
  jump b1
b1:
  %i0: i64 = phi b0: 0, b2: %i1
  %c = lt %i0, %n : bool
  branch %c, b2, b3
b2:
  %i1 = add %i0, 1 : i64
  jump b1
b3:
  return none
"""
