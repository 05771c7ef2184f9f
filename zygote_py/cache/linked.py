"""What Numba keeps on disk for a function that calls a derivative, `@njit(cache=True)`, is used only while it holds.

    library._reload_init.add(linked(df, (types.float64,), holds, has_constants=False))

Numba asks whether the file of the function itself has changed, and not what it calls. The machine code of a derivative
goes along with that of its callers; so does what is here, which is compared when the code is read, with a digest of the
differentiated function, of all that it calls, and of what it captures: compiled code has captured values as constants.
Where that cannot be told, the code of the callers is compiled again in each process, and a warning says so once.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from typing import Any, Protocol

from numba import types

from zygote_py import numba_adapter
from zygote_py.cache import environment
from zygote_py.cache.fingerprint import NotCacheable, content_of, fingerprint
from zygote_py.ir.core import Type
from zygote_py.requests import Request


class Derivative(Protocol):
    """What is asked of a derivative here; it is pickled, too."""

    primal: Any
    form: Any

    @property
    def _request(self) -> Request: ...


class Linked:
    """Goes with machine code, and raises OSError where it is unpickled if the code does not hold any more."""

    def __init__(self, state: Callable[[], tuple[bytes, str]], what: str) -> None:
        self._state = state
        self._what = what

    def __call__(self) -> None:
        """Numba calls what goes with machine code when it has been read."""

    def __reduce__(self) -> Any:
        try:
            return _checked, self._state()
        except Exception as error:  # objects of the user's may raise anything when they are looked at
            numba_adapter.warn(
                f"Cannot cache compiled functions that call the {self._what}, as it uses what another process cannot "
                f"compare: {error}"
            )
            return _checked, (b"", "")


def linked(
    derivative: Derivative,
    argument_types: tuple[Type, ...],
    holds: Callable[[], bool],
    *,
    is_whole: bool,
    has_constants: bool,
) -> Linked:
    """What goes with the machine code of a derivative for arguments of these types.

    If it is not `is_whole`, it can be read by no other process: there are recursive functions in it.

    If captured values are constants in it (`has_constants`), they are looked at now; else when the code of a caller is
    written, if the code `holds` then.
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
    return Linked(
        known if has_constants and is_whole else state,
        f"{derivative.form} of {getattr(primal, '__qualname__', primal)}",
    )


def _digest(derivative: Derivative, argument_types: tuple[Type, ...]) -> str:
    environment.check_unchanged()
    prints = fingerprint(derivative._request, argument_types, (), environment.versions(), environment.registered())
    captured = [(where, content_of(value)) for where, (value, by_value) in prints.captured.items() if not by_value]
    return hashlib.sha256(f"{prints.digest} {captured}".encode()).hexdigest()


def _checked(pickled: bytes, digest: str) -> Callable[[], None]:
    """What is unpickled. An OSError is to Numba as if its file were missing: it compiles, and writes another."""
    try:
        same = bool(digest) and _digest(*pickle.loads(pickled)) == digest
    except Exception as error:
        raise OSError(f"what was compiled cannot be compared: {error}") from error
    if not same:
        raise OSError("what was compiled calls a derivative of what has changed since")
    return _nothing


def _nothing() -> None:
    """What is left of it: there is nothing to do."""
