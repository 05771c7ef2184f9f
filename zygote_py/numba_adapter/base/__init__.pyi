"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .decorations import (
    SEMANTIC_OPTIONS as SEMANTIC_OPTIONS,
    Decoration as Decoration,
    chosen as chosen,
    is_always_inlined as is_always_inlined,
    is_ambiguous as is_ambiguous,
    is_as_undecorated as is_as_undecorated,
    is_from_source as is_from_source,
    is_plainly_decorated as is_plainly_decorated,
    locals_of as locals_of,
    misfit_text as misfit_text,
    options_within as options_within,
    own_options as own_options,
    py_func_of as py_func_of,
    semantic as semantic,
    signatures_of as signatures_of,
)
from .ir_walks import (
    IRPass as IRPass,
    Labels as Labels,
    add_argument as add_argument,
    add_variable as add_variable,
    assigned as assigned,
    assignments as assignments,
    captured as captured,
    copies as copies,
    defaults as defaults,
    definition as definition,
    dropped_after as dropped_after,
    fresh as fresh,
    held_by as held_by,
    is_constant as is_constant,
    is_reached as is_reached,
    keys as keys,
    loc_of as loc_of,
    originals as originals,
    parameters as parameters,
    rewrite as rewrite,
    statements as statements,
)
from .liveness import deaths_on_edges as deaths_on_edges, quick_liveness as quick_liveness
from .messages import (
    check_parameters as check_parameters,
    definition_of as definition_of,
    is_ours as is_ours,
    note_calls as note_calls,
    place_of as place_of,
    refuse_with as refuse_with,
    translate_error as translate_error,
)
from .own_memory import memory_of_arrays as memory_of_arrays
from .pass_times import time_compilation as time_compilation, timed as timed
from .type_facts import (
    as_pointer as as_pointer,
    contents_of_defaults as contents_of_defaults,
    known_type as known_type,
    refresh as refresh,
    refreshed_context as refreshed_context,
    runtime_type as runtime_type,
    with_changing_default as with_changing_default,
)
from .type_propagation import propagating_changes as propagating_changes
from .untypable import unknown as unknown, unsuitable as unsuitable
