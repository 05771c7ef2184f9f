"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .activity import Activity as Activity, find_active as find_active, live_at_ends as live_at_ends
from .bandwidth import hessian_bandwidth as hessian_bandwidth
from .data_independence import goes_the_same_way as goes_the_same_way
from .diagnosis import cause as cause
from .flows import through as through
from .kinds import (
    can_have_adjoint as can_have_adjoint,
    carries_adjoint as carries_adjoint,
    element_of as element_of,
    has_shadow as has_shadow,
    is_array as is_array,
    is_float as is_float,
    is_list as is_list,
    is_number as is_number,
    rank_of as rank_of,
)
from .left_out import Degree as Degree, Degrees as Degrees, Summaries as Summaries, find_left_out as find_left_out
from .linearity import Linearity as Linearity
from .privatization import Private as Private, allocated_in as allocated_in, written_in as written_in
from .tuple_leaves import expose_leaves as expose_leaves, expose_results as expose_results, reachable as reachable
