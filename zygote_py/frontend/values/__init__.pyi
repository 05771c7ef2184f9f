"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .bundles import (
    Bundle as Bundle,
    cast_op as cast_op,
    cells_of as cells_of,
    component as component,
    components as components,
    constant as constant,
    is_list as is_list,
    is_tuple as is_tuple,
    leaves_of as leaves_of,
    plain as plain,
    structure as structure,
)
from .emitter import Counter as Counter, Emitter as Emitter, Iteration as Iteration
from .function_unions import empty_array as empty_array
from .iteration import (
    INT as INT,
    ZERO as ZERO,
    OverArray as OverArray,
    OverCheckpointed as OverCheckpointed,
    OverEnumerate as OverEnumerate,
    OverFlat as OverFlat,
    OverIndices as OverIndices,
    OverRange as OverRange,
    OverTuple as OverTuple,
    OverZip as OverZip,
    counter_of as counter_of,
    dim as dim,
    element_of as element_of,
    is_used_up as is_used_up,
    over_elements as over_elements,
    pick as pick,
    product as product,
    shape_of as shape_of,
    unravel as unravel,
)
from .registry import (
    by_position as by_position,
    implementation_of as implementation_of,
    implemented as implemented,
    is_differentiable as is_differentiable,
    lowered as lowered,
    lowers as lowers,
    method_of as method_of,
    overload as overload,
)
from .run_time_checks import (
    check_count as check_count,
    check_filled as check_filled,
    check_last_axis as check_last_axis,
    check_out as check_out,
    check_positive as check_positive,
    enum_value as enum_value,
)
from .trees import (
    flat_type as flat_type,
    flatten as flatten,
    join as join,
    parameters_of as parameters_of,
    split as split,
    unflatten as unflatten,
)
