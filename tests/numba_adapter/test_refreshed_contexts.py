"""Numba's contexts after they are refreshed by this package, for the first time in a process, and as Numba does it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

_PROGRAM = """
    import re
    import numba
    from zygote_py.numba_adapter.base import refresh
    from zygote_py.numba_adapter.base.blas import load_blas
    from zygote_py.numba_adapter.base.internals import cpu_target

    load_blas()
    {how}
    typing, target = cpu_target.typing_context, cpu_target.target_context
    found = [
        *(f"{{key}} {{getattr(each, '_attr', '')}}" for key, all in typing._attributes.items() for each in all),
        *(f"{{key}} {{each}}" for key, each in typing._functions.items()),
        *map(str, typing._globals.values()),
        *(f"{{key}} {{[kinds for kinds, _ in each.versions]}}" for key, each in target._defns.items()),
        *(f"{{key}} {{[kinds for kinds, _ in each.versions]}}" for key, each in target._getattrs.items()),
    ]
    for line in found:
        print(re.sub(r" at 0x[0-9a-f]+|\\$\\d+|[0-9A-F]{{10,}}", "", line))
"""


def _lines(how: str) -> list[str]:
    program = textwrap.dedent(_PROGRAM.format(how=how))
    environment = {**os.environ, "PYTHONHASHSEED": "0"}  # the order of sets of types is that of implementations
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.splitlines()


def test_the_same_implementations():
    ours, numbas = _lines("refresh()"), _lines("for _ in range(2): cpu_target.target_context.refresh()")
    assert len(numbas) > 1000
    assert ours == numbas


def test_of_what_is_told_later():
    """A second refreshing finds what has been registered since the first."""
    program = """
        import numba
        from numba.extending import overload, overload_method, types
        from zygote_py.numba_adapter.base import refresh
        from zygote_py.numba_adapter.base.internals import cpu_target

        refresh()

        def thrice(x):
            return x

        overload(thrice)(lambda x: lambda x: 3.0 * x)
        overload_method(types.Float, "halved")(lambda x: lambda x: 0.5 * x)
        refresh()
        resolved = cpu_target.typing_context.resolve_value_type(thrice)
        assert resolved is not None
        print(numba.njit(lambda x: thrice(x).halved())(2.0))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "3.0\n", done.stderr
