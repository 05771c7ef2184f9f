"""Emitted functions that make, write and copy arrays, against the interpreter, in plain Python and compiled."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from zygote_py import numba_adapter
from zygote_py.emit import NJIT, emit
from zygote_py.ir import interpret, parse, verify

X = np.asfortranarray(np.arange(6.0).reshape(3, 2))
V = np.arange(1.0, 6.0)
PROGRAMS = {
    "made": (
        """
        function f(%x: f64[:, :]F, %n: i64) -> (f64[:, :]F, f32[:, :]F, c128[:], bool[:])
        b0:
          %m = dim %x, 0 : i64
          %l = common_length %n, 1 : i64
          %k = common_length %l, %m : i64
          %a = zeros %k, 2 : f64[:, :]F
          %b = record %k, 2 : f32[:, :]F
          setitem %b, f32(1.5)
          initialize %b, f32(2.5), 0, 1
          %c = zeros %k : c128[:]
          %d = zeros 3 : bool[:]
          setitem %d, True
          %p = pack %a, %b, %c, %d : (f64[:, :]F, f32[:, :]F, c128[:], bool[:])
          return %p
        """,
        [(X, 1), (X, 3), (X, 2)],
    ),
    "copied": (
        """
        function f(%x: f64[:, :]F) -> (f64[:, :], f64[:, :]F, f32[:, :], f32[:, :]F)
        b0:
          %a = np.copy %x : f64[:, :]
          %b = np.copy %x : f64[:, :]F
          %c = np.copy %x : f32[:, :]
          %d = np.copy %x : f32[:, :]F
          setitem %b, 7.0, 0, 1
          setitem %c, f32(8.0), 0, 1
          %p = pack %a, %b, %c, %d : (f64[:, :], f64[:, :]F, f32[:, :], f32[:, :]F)
          return %p
        """,
        [(X,), (X[:1],)],
    ),
    "accumulated": (
        """
        function f(%x: f64[:], %n: i64) -> f64[:]
        b0:
          %y = zeros %n : f64[:]
          %z = record : f64[]
          setitem %z, 0.5
          accumulate %y, %x
          accumulate %y, 1.0
          accumulate %y, 2.0, 0
          accumulate %z, 1.0
          %e = getitem %z : f64
          accumulate %y, %e, -1
          return %y
        """,
        [(V, 5), (V[:1], 5)],
    ),
    "reads_stay_where_they_are": (
        """
        function f(%x: f64[:], %i: i64) -> f64
        b0:
          %t0 = getitem %x, %i : f64
          %v = slice 1, none : slice
          %w = getitem %x, %v : f64[:]
          setitem %w, 5.0
          %t1 = getitem %x, %i : f64
          %t2 = add %t0, %t1 : f64
          %s0 = np.sum %x : f64
          %y = add %x, 1.0 : f64[:]
          initialize %x, 3.0, 0
          %s1 = np.sum %y : f64
          %t3 = mul %t2, %s0 : f64
          %t4 = add %t3, %s1 : f64
          return %t4
        """,
        [(V, 0), (V, 2)],
    ),
    "a_view_is_a_handle": (
        """
        function f(%x: f64[:, :], %i: i64) -> (f64[:], f64)
        b0:
          %row = getitem %x, %i : f64[:]
          %t = np.transpose %x : f64[:, :]F
          %c = getitem %t, 1 : f64[:]A
          setitem %x, 4.0
          %e = getitem %row, 0 : f64
          setitem %c, %e
          setitem %row, 9.0, 1
          %l = getitem %c, %i : f64
          %p = pack %row, %l : (f64[:], f64)
          return %p
        """,
        [(np.arange(6.0).reshape(3, 2), 0), (np.arange(6.0).reshape(3, 2), 2)],
    ),
    "ping_pong": (
        """
        function f(%x: f64[:], %n: i64) -> (f64[:], f64[:])
        b0:
          %y = np.copy %x : f64[:]
          jump b1
        b1:
          %i: i64 = phi b0: 0, b2: %i2
          %a: f64[:] = phi b0: %x, b2: %b
          %b: f64[:] = phi b0: %y, b2: %a
          %c = lt %i, %n : bool
          branch %c, b2, b3
        b2:
          %e = getitem %a, %i : f64
          %e2 = mul %e, 2.0 : f64
          setitem %b, %e2, 0
          %i2 = add %i, 1 : i64
          jump b1
        b3:
          %p = pack %a, %b : (f64[:], f64[:])
          return %p
        """,
        [(V, 0), (V, 1), (V, 4)],
    ),
    "a_slice_for_several_arrays": (
        """
        function f(%x: f64[:, :], %k: i64) -> f64[:, :]A
        b0:
          %s = slice none, %k : slice
          %all = slice none, none : slice
          %a = getitem %x, %s : f64[:, :]
          setitem %a, 1.0
          %b = getitem %x, %all, %s : f64[:, :]A
          setitem %b, 2.0
          %r = slice none, none, -1 : strided_slice
          %d = getitem %x, %r, %all : f64[:, :]A
          return %d
        """,
        [(np.arange(6.0).reshape(3, 2), 1), (np.arange(6.0).reshape(3, 2), 0)],
    ),
}


def outcome(call, args):
    args = [np.copy(arg, order="K") if isinstance(arg, np.ndarray) else arg for arg in args]
    try:
        result = call(*args)
    except ValueError:
        return ValueError
    found = result if isinstance(result, tuple) else (result,)
    return [(np.asarray(each).dtype, np.asarray(each).tolist()) for each in (*found, *args)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_emitted_arrays(name, golden):
    source, calls = PROGRAMS[name]
    (function,) = parse(dedent(source).strip())
    verify(function)
    emitted = emit(function, name=name, target=NJIT)
    golden(f"emit/arrays_{name}", emitted.source)
    compiled = numba_adapter.load(emitted)
    for args in calls:
        expected = outcome(lambda *args: interpret(function, *args), args)
        assert outcome(compiled.py_func, args) == expected
        assert outcome(compiled, args) == expected
