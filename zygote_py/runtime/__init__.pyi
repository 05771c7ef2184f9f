"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .colouring import (
    Ints as Ints,
    Mask as Mask,
    Pattern as Pattern,
    colour_columns as colour_columns,
    colour_symmetric as colour_symmetric,
    dense_rows as dense_rows,
    pattern_of as pattern_of,
    rows_of as rows_of,
)
from .compiled_function import DerivativeFunction as DerivativeFunction, kept_derivative as kept_derivative
from .pullbacks import pullback as pullback
from .ravel import Layout as Layout, Vector as Vector
from .tracebacks import shortening as shortening
