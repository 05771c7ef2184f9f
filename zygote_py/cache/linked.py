"""Guards of callers: the code that Numba keeps on disk for a function that calls a derivative, `@njit(cache=True)`.

    library._reload_init.add(guard_callers(df, (types.float64,), holds, has_constants=False))

Numba checks whether the file of the function itself has changed, not those of the functions that it calls. The machine
code of a derivative is stored with that of its callers, and so is a guard: when the code is read, it compares a digest
of the differentiated function, of all that it calls, and of its captured variables, which are constants in compiled
code. If there is no such digest, the callers are compiled again in each process, with a warning.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from typing import Any, Protocol

from numba import types

from zygote_py import numba_adapter
from zygote_py.cache import environment
from zygote_py.cache.fingerprint import content_of
from zygote_py.cache.inspection import NotCacheable
from zygote_py.compiler import Request
from zygote_py.ir import Type


class Derivative(Protocol):
    """The derivative that callers call; it is pickled."""

    primal: Any
    form: Any

    @property
    def _request(self) -> Request: ...


class CallerGuard:
    """An object that is stored with machine code, and raises OSError when it is unpickled if the code is outdated."""

    def __init__(self, state: Callable[[], tuple[bytes, str]], what: str) -> None:
        self._state = state
        self._what = what

    def __call__(self) -> None:
        """Do nothing: Numba calls objects that are stored with machine code when it has been read."""

    def __reduce__(self) -> Any:
        try:
            return _checked, self._state()
        except Exception as error:  # objects of the user's may raise anything when they are looked at
            numba_adapter.warn(
                f"Cannot cache compiled functions that call the {self._what}, as it uses what another process cannot "
                f"compare: {error}"
            )
            return _checked, (b"", "")


def guard_callers(
    derivative: Derivative,
    argument_types: tuple[Type, ...],
    holds: Callable[[], bool],
    *,
    is_whole: bool,
    has_constants: bool,
) -> CallerGuard:
    """Return the guard for the machine code of a derivative for arguments of these types.

    Unless the code `is_whole`, other processes cannot read it: it contains recursive functions. If captured values are
    constants in it (`has_constants`), they are compared with their values of now; else with those at the time when the
    code of a caller is written, provided that the code `holds` then.
    """

    argument_types = tuple(map(types.unliteral, argument_types))

    def look() -> tuple[bytes, str]:
        return pickle.dumps((derivative, argument_types)), _digest(derivative, argument_types)

    def state() -> tuple[bytes, str]:
        if not is_whole:
            raise NotCacheable("recursive functions")
        if not holds():
            raise NotCacheable("it has changed since it was compiled")
        return look()

    def known() -> tuple[bytes, str]:
        if failure is not None:
            raise failure
        return found

    failure: Exception | None = None
    if has_constants and is_whole:
        try:
            found = look()
        except Exception as error:  # objects of the user's may raise anything when they are looked at
            failure = error
    primal = derivative.primal
    return CallerGuard(
        known if has_constants and is_whole else state,
        f"{derivative.form} of {getattr(primal, '__qualname__', primal)}",
    )


def _digest(derivative: Derivative, argument_types: tuple[Type, ...]) -> str:
    environment.check_unchanged()
    prints = environment.key_of(derivative._request, argument_types, ())
    captured = [(where, content_of(value)) for where, (value, by_value) in prints.captured.items() if not by_value]
    return hashlib.sha256(f"{prints.digest} {captured}".encode()).hexdigest()


def _checked(pickled: bytes, digest: str) -> Callable[[], None]:
    """Unpickle a guard. To Numba an OSError is a missing file: it compiles, and writes another."""
    try:
        same = bool(digest) and _digest(*pickle.loads(pickled)) == digest
    except Exception as error:
        raise OSError(f"what was compiled cannot be compared: {error}") from error
    if not same:
        raise OSError("what was compiled calls a derivative of what has changed since")
    return _nothing


def _nothing() -> None:
    """Stand for an unpickled guard, which has nothing to do."""
