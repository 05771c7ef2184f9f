"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .by_address import (
    add_entry_by_fields as add_entry_by_fields,
    entry_by_address as entry_by_address,
    is_by_address as is_by_address,
    taken_by_address as taken_by_address,
    type_by_address as type_by_address,
)
from .call_slot import DirectCalls as DirectCalls, Sights as Sights, make_direct as make_direct, sights as sights
from .function_content import code_text as code_text
from .function_numbers import (
    EMITTED as EMITTED,
    SMALLEST_NUMBER as SMALLEST_NUMBER,
    number_functions as number_functions,
)
from .helper_store import (
    Helpers as Helpers,
    environment_named as environment_named,
    is_called_helper as is_called_helper,
    is_loaded as is_loaded,
    keep_helpers as keep_helpers,
    result_of as result_of,
)
from .kept_writes import keep_writes as keep_writes
from .linked_only import link_callees as link_callees, link_only as link_only
from .recursive import (
    UNRESOLVED as UNRESOLVED,
    callees as callees,
    is_recursive as is_recursive,
    load_together as load_together,
    recursive_callees as recursive_callees,
)
from .typing_only import typed_only as typed_only
from .vector_functions import VectorLibrary as VectorLibrary, known_functions as known_functions
