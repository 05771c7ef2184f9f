"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .alias_checks import (
    also_named as also_named,
    is_folded as is_folded,
    list_shares_memory as list_shares_memory,
    memory_of as memory_of,
    refuse_if_shared as refuse_if_shared,
    refuse_shared_arguments as refuse_shared_arguments,
    share_memory as share_memory,
)
from .derivatives import Derivatives as Derivatives, calls_with_cases as calls_with_cases, primal_of as primal_of
from .frames import (
    ForwardFrame as ForwardFrame,
    LoopState as LoopState,
    ReverseFrame as ReverseFrame,
    case_of_body as case_of_body,
    set_function as set_function,
)
from .inverses import Inverse as Inverse, check_steps as check_steps, inverse_of as inverse_of
from .reachable import routines_behind as routines_behind
from .repeatable import make_repeatable as make_repeatable
from .shared_cases import joined_cases as joined_cases
