"""Expansion of array instructions into loops of scalar instructions, as few as possible and without temporary arrays.

    %t = sub %x, %m : f64[:]                        b0: %n = dim %x, 0 : i64
    %u = mul %t, %t : f64[:]                            jump b1
    %s = np.sum %u : f64                    ->      b1: %i: i64 = phi b0: 0, b2: %i2
                                                        %s: f64 = phi b0: 0.0, b2: %s2
                                                        %c = lt %i, %n : bool
                                                        branch %c, b2, b3
                                                    b2: %xi = getitem %x, %i : f64
                                                        %t = sub %xi, %m : f64 ...

Expanded are elementwise operations with broadcasting, stores into whole arrays, copies, indexing with integer or
boolean arrays, sums and products. Other instructions remain unchanged. Values and their order are those of Numba's
compilation of the same function; a store whose value overlaps its target is made from a copy, as in NumPy.
"""

from __future__ import annotations

from zygote_py.ir.arrays.expand import expand_arrays

__all__ = ["expand_arrays"]
