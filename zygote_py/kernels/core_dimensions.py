"""The signature of a function over arrays of inputs, as NumPy's generalised ufuncs have it.

    Dimensions.of("(k),()->(),(k)")     # inputs ("k",), (); outputs (), ("k",)

https://numpy.org/doc/stable/reference/c-api/generalized-ufuncs.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Self

from zygote_py.ir.lazy_dataclass import dataclass

Names = tuple[str, ...]

_NAMES = r"\((?:\w+(?:,\w+)*)?\)"
_LIST = rf"(?:{_NAMES}(?:,{_NAMES})*)?"
_SIGNATURE = re.compile(rf"({_LIST})->({_LIST})")


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The names of the dimensions that an item of each input, and of each output, has itself."""

    inputs: tuple[Names, ...]
    outputs: tuple[Names, ...]

    @classmethod
    def of(cls, signature: str) -> Self:
        """Read a signature. Raises ValueError if it is malformed."""
        found = _SIGNATURE.fullmatch("".join(signature.split()))
        if found is None:
            raise ValueError(f'not a signature: {signature!r}; one looks like "(k),()->(),(k)"')
        inputs, outputs = (tuple(map(_names, re.findall(_NAMES, side))) for side in found.groups())
        known = {name for each in inputs for name in each if not name.isdecimal()}
        for name in (name for each in outputs for name in each if not name.isdecimal()):
            if name not in known:
                raise ValueError(f"the dimension `{name}` of an output in {signature!r} is that of no input")
        return cls(inputs, outputs)

    def sizes(self, shapes: Sequence[tuple[int, ...]], names: Sequence[str]) -> dict[str, int]:
        """Return the sizes of the dimensions, given the shapes of the inputs. Raises ValueError if they do not agree.

        `names` are those of the inputs, for the message.
        """
        sizes: dict[str, int] = {}
        owner: dict[str, str] = {}
        for core, shape, input_name in zip(self.inputs, shapes, names, strict=True):
            for name, size in zip(core, shape[len(shape) - len(core) :], strict=True):
                expected = int(name) if name.isdecimal() else sizes.setdefault(name, size)
                if size != expected:
                    where = "" if name.isdecimal() else f", as `{owner[name]}` has"
                    raise ValueError(
                        f"the dimension `{name}` of the argument `{input_name}` is {size}, where {expected} is expected"
                        f"{where}"
                    )
                owner.setdefault(name, input_name)
        return sizes


def shape_of(core: Names, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of an item with these dimensions."""
    return tuple(int(name) if name.isdecimal() else sizes[name] for name in core)


def _names(text: str) -> Names:
    return tuple(text[1:-1].split(",")) if len(text) > 2 else ()
