"""Derivatives as device functions: what `df(x[i], p)` calls in a kernel of the user's."""

from __future__ import annotations

import weakref
from contextlib import suppress
from dataclasses import replace
from typing import Any

from zygote_py import numba_adapter
from zygote_py.adjoints import DifferentiationError, refuse
from zygote_py.base import caller
from zygote_py.compiler import GradientForm
from zygote_py.ir import Type
from zygote_py.numba_adapter.cuda import launch
from zygote_py.numba_adapter.cuda.functions import device_function
from zygote_py.runtime.compiled_function import DerivativeFunction, stub_of
from zygote_py.runtime.entered import device_entered

_made: weakref.WeakKeyDictionary[DerivativeFunction[..., Any], tuple[object, Any]] = weakref.WeakKeyDictionary()


def in_kernels(df: DerivativeFunction[..., Any]) -> Any:
    """Return the device function of a derivative, whose captured variables are constants, as in all of Numba's code."""
    with numba_adapter.COMPILER_LOCK:
        known = _made.get(df)
        if known is None or known[0] is not df._now or df._is_outdated():
            if df._is_outdated():
                df.rules_have_changed()
            known = _made[df] = df._now, device_function(stub_of(df._request, []), lambda kinds: _code_for(df, kinds))
        return known[1]


def shown(df: DerivativeFunction[..., Any], kinds: tuple[Type, ...], stage: str, capability: tuple[int, int]) -> str:
    """Return the text of a derivative for a device, or its PTX."""
    if stage == "python":
        return device_entered(df, kinds).code.emitted.source
    launch.cuda_module()
    return launch.ptx(_code_for(df, kinds), kinds, capability, device=True)


def _code_for(df: DerivativeFunction[..., Any], kinds: tuple[Type, ...]) -> Any:
    found = device_entered(df, kinds)
    code = found.code
    if code.records:
        if isinstance(df.form, GradientForm) and df.form.mode == "auto":
            with suppress(DifferentiationError):  # which says less than the following
                return _code_for(DerivativeFunction(df.primal, replace(df.form, mode="forward")), kinds)
        names = ", ".join(f"`{record.name}`" for record in code.records)
        raise refuse(
            f"the {df.form} of `{getattr(df, '__name__', '?')}` records values of its loops ({names}), how many is not "
            "known when the kernel is compiled",
            df._request.loc,
            'call it by vectorize(..., target="cuda"), which gives it memory, or let the loops count to constants',
        )
    if code.given:
        raise refuse(
            f"the {df.form} of `{getattr(df, '__name__', '?')}` returns arrays, which a thread cannot allocate",
            df._request.loc,
            'call it by vectorize(..., target="cuda"), or ask for the gradient of numbers only',
        )
    inner = numba_adapter.load(code.emitted)
    if not code.hidden:
        return inner
    values = {f"captured_{number}": value for number, value in enumerate(found.captured)}
    parameters = df._request.signature.parameters
    function = caller(
        inner, ", ".join(parameters), ", ".join((*parameters, *values)), name=df._request.name, values=values
    )
    return launch.device(function)
