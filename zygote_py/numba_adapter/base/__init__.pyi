"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .decorations import (
    SEMANTIC_OPTIONS as SEMANTIC_OPTIONS,
    Decoration as Decoration,
    chosen as chosen,
    is_ambiguous as is_ambiguous,
    is_as_undecorated as is_as_undecorated,
    is_from_source as is_from_source,
    is_plainly_decorated as is_plainly_decorated,
    locals_of as locals_of,
    misfit_text as misfit_text,
    options_within as options_within,
    py_func_of as py_func_of,
    semantic as semantic,
    signatures_of as signatures_of,
)
from .function_content import code_text as code_text
from .function_numbers import (
    EMITTED as EMITTED,
    SMALLEST_NUMBER as SMALLEST_NUMBER,
    number_functions as number_functions,
)
from .helper_store import (
    Helpers as Helpers,
    are_helpers as are_helpers,
    environment_named as environment_named,
    is_loaded as is_loaded,
    keep_helpers as keep_helpers,
)
from .ir_walks import (
    IRPass as IRPass,
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
from .kept_writes import keep_writes as keep_writes
from .linked_only import link_callees as link_callees, link_only as link_only
from .messages import (
    check_parameters as check_parameters,
    definition_of as definition_of,
    is_ours as is_ours,
    note_calls as note_calls,
    place_of as place_of,
    refuse_with as refuse_with,
    translate_error as translate_error,
)
from .pass_times import time_compilation as time_compilation, timed as timed
from .recursive import (
    UNRESOLVED as UNRESOLVED,
    callees as callees,
    is_recursive as is_recursive,
    load_together as load_together,
    recursive_callees as recursive_callees,
)
from .type_facts import (
    as_pointer as as_pointer,
    known_type as known_type,
    refreshed_context as refreshed_context,
    runtime_type as runtime_type,
)
from .typing_only import typed_only as typed_only
from .untypable import unknown as unknown, unsuitable as unsuitable
