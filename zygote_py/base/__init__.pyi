"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .captured_types import captured_type as captured_type, is_captured_type as is_captured_type
from .captures import (
    CONSTANT_MODULES as CONSTANT_MODULES,
    MADE as MADE,
    OURS as OURS,
    PARTS as PARTS,
    Capture as Capture,
    are_unchanged as are_unchanged,
    attribute_of_object as attribute_of_object,
    content_of as content_of,
    content_of_default as content_of_default,
    default_by_name as default_by_name,
    defaults_of as defaults_of,
    global_names as global_names,
    is_default_read as is_default_read,
    is_observed as is_observed,
    member_of_class as member_of_class,
    named_in as named_in,
    parts_of_function as parts_of_function,
    variable_of as variable_of,
    varies as varies,
)
from .checkpoints import Checkpointed as Checkpointed, checkpoint as checkpoint, checkpointed as checkpointed
from .custom_rules import (
    CustomRule as CustomRule,
    Ignored as Ignored,
    calling as calling,
    given_for as given_for,
    is_rule as is_rule,
    name_of as name_of,
    place_of as place_of,
    python_function as python_function,
    watch as watch,
)
from .exception_edges import LEFT as LEFT, leads_out as leads_out, through_trampolines as through_trampolines
from .extensions import load_extensions as load_extensions
from .python_text import (
    Names as Names,
    arguments_text as arguments_text,
    caller as caller,
    captured as captured,
    define as define,
    execute as execute,
    free as free,
    parameters_text as parameters_text,
    stub as stub,
)
from .statements import TypedFunction as TypedFunction
from .structures import (
    arrays_in as arrays_in,
    leaves as leaves,
    made as made,
    map_leaves as map_leaves,
    parts as parts,
    with_parts as with_parts,
)
from .timings import (
    begin_stage as begin_stage,
    call_text as call_text,
    compilation as compilation,
    end_stage as end_stage,
    stage as stage,
    timings_are_wanted as timings_are_wanted,
)
