"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .errors import DifferentiationError as DifferentiationError, refuse as refuse
from .forward.dependence import (
    Dependences as Dependences,
    as_array as as_array,
    joined as joined,
    joined_all as joined_all,
    no_sets as no_sets,
)
from .forward.lanes import NotInLanes as NotInLanes, push_in_lanes as push_in_lanes
from .forward.pushforward import Pushed as Pushed, Pushforwards as Pushforwards
from .forward.transposed import Transposed as Transposed
from .reverse.adjoint import Prepared as Prepared, make_adjoint as make_adjoint
from .reverse.calls import name_apart as name_apart
from .reverse.joint import join as join, join_halves as join_halves
from .reverse.shadows import add_shadows as add_shadows
from .reverse.snapshots import keep_contents as keep_contents
from .rules import rule_for as rule_for
from .rules.arrays.guarded import unless_zero as unless_zero
from .rules.formulas.opaque import (
    SAMPLES as SAMPLES,
    is_differentiated as is_differentiated,
    matters as matters,
    number_matters as number_matters,
    opaque_for as opaque_for,
)
from .rules.formulas.rule import ROWS as ROWS, STRUCTURAL as STRUCTURAL, UNKNOWN as UNKNOWN, Rule as Rule
from .rules.formulas.terms import Term as Term, is_singular as is_singular, parse as parse, vanishes as vanishes
from .rules.helpers.special import digamma as digamma
from .rules.refused import REFUSED as REFUSED
from .strategies.binomial import iterations_before as iterations_before
from .strategies.checkpoint import Checkpoint as Checkpoint
from .strategies.custom import (
    Custom as Custom,
    Gradient as Gradient,
    Input as Input,
    check_rules as check_rules,
)
from .strategies.long_loops import check_returned as check_returned, divide_loops as divide_loops
from .strategies.outlined_loops import written_after_return as written_after_return
from .strategies.reversible_loops import (
    has_reversible_steps as has_reversible_steps,
    outline_reversible_loops as outline_reversible_loops,
)
