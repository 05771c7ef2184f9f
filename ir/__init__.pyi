"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .analysis.dataflow import intersection as intersection, liveness as liveness, reach as reach, solve as solve
from .analysis.distances import Distances as Distances
from .analysis.dominators import (
    DominatorTree as DominatorTree,
    dominator_tree as dominator_tree,
    postdominator_tree as postdominator_tree,
    reverse_postorder as reverse_postorder,
)
from .analysis.effects import (
    bases as bases,
    draws as draws,
    effect as effect,
    has_memory as has_memory,
    is_fresh as is_fresh,
    is_view as is_view,
    may_write as may_write,
    reads as reads,
    writes as writes,
)
from .analysis.loops import (
    CountedLoop as CountedLoop,
    Loop as Loop,
    LoopNest as LoopNest,
    add_counter as add_counter,
    counted as counted,
    counted_exit as counted_exit,
    invariant as invariant,
    loop_nest as loop_nest,
    returning_blocks as returning_blocks,
    step_of as step_of,
)
from .analysis.memory import Memory as Memory, is_made_after as is_made_after
from .analysis.objects import Objects as Objects, Summary as Summary, summaries_of as summaries_of
from .analysis.routines import (
    cycles as cycles,
    find_effects as find_effects,
    functions_of as functions_of,
    results_of as results_of,
    routines_of as routines_of,
)
from .analysis.subscripts import Access as Access, Accesses as Accesses, Index as Index
from .arrays.aliasing import are_apart as are_apart, same_elements as same_elements
from .arrays.canonical_form import make_canonical as make_canonical
from .arrays.fusion import kind_of as kind_of
from .building.builder import (
    LARGEST as LARGEST,
    NONE as NONE,
    Builder as Builder,
    at_exit as at_exit,
    inserting as inserting,
    item_reads as item_reads,
    items_of as items_of,
    items_read as items_read,
    packed_type as packed_type,
    result_type as result_type,
)
from .building.cfg import (
    drop_unreachable as drop_unreachable,
    place_before as place_before,
    rename_incoming as rename_incoming,
)
from .building.clone import Clone as Clone, clone as clone
from .building.loop_nest import Nest as Nest, rounds_by_one as rounds_by_one
from .building.placeholders import define as define, nothing as nothing
from .building.ssa import SSABuilder as SSABuilder
from .checks.debug import OPTIONAL as OPTIONAL, check_after as check_after, is_left_out as is_left_out
from .checks.interpret import (
    StepLimitError as StepLimitError,
    Trace as Trace,
    interpret as interpret,
    interpret_adjoint as interpret_adjoint,
)
from .checks.verify import verify as verify, verify_canonical as verify_canonical, verify_orders as verify_orders
from .core import (
    Alpha as Alpha,
    Block as Block,
    Branch as Branch,
    CameFrom as CameFrom,
    Const as Const,
    Foreign as Foreign,
    Function as Function,
    Instr as Instr,
    InternalError as InternalError,
    Jump as Jump,
    Loc as Loc,
    Operand as Operand,
    Param as Param,
    Phi as Phi,
    Raise as Raise,
    Return as Return,
    Routine as Routine,
    Terminator as Terminator,
    Type as Type,
    Undef as Undef,
    Value as Value,
    is_zero as is_zero,
    predecessors as predecessors,
    retarget as retarget,
    zero as zero,
    zero_key as zero_key,
)
from .ops.helpers import (
    array_helper as array_helper,
    fresh_helper as fresh_helper,
    helper as helper,
    is_helper as is_helper,
)
from .ops.products import (
    add_large_product as add_large_product,
    add_product as add_product,
    matrix_product as matrix_product,
    matrix_vector_product as matrix_vector_product,
)
from .passes import CANONICAL as CANONICAL, CLEAN_UP as CLEAN_UP, run as run
from .passes.accumulation.lowering import (
    write_out_guards as write_out_guards,
    write_out_whole_accumulations as write_out_whole_accumulations,
)
from .passes.canonical.thread_jumps import forward_jumps as forward_jumps
from .passes.canonical.unrotate_loops import unrotate_loops as unrotate_loops
from .passes.cleanup.common_subexpressions import merge_common_subexpressions as merge_common_subexpressions
from .passes.cleanup.fold_constants import fold_constants as fold_constants
from .passes.cleanup.merge_blocks import merge_blocks as merge_blocks
from .passes.cleanup.redundant_phis import remove_redundant_phis as remove_redundant_phis
from .passes.program.flatten_results import flatten_results as flatten_results
from .passes.program.inline import inline_calls as inline_calls, shares_what_it_writes as shares_what_it_writes
from .passes.program.join_stacks import join_stacks as join_stacks
from .passes.program.outline import (
    inputs_of as inputs_of,
    outlined_body as outlined_body,
    outlined_loop as outlined_loop,
    replace_loop as replace_loop,
)
from .passes.program.recursion_limit import limit_depth as limit_depth, with_limits as with_limits
from .passes.program.split_stacks import split_stacks as split_stacks
from .special_functions import (
    C_TYPES as C_TYPES,
    MODULE as MODULE,
    Special as Special,
    of_pointer as of_pointer,
    special as special,
)
from .text.identifiers import (
    identifier as identifier,
    is_identifier as is_identifier,
    one_line as one_line,
    place_text as place_text,
)
from .text.parser import ParseError as ParseError, parse as parse
from .text.printer import Names as Names
from .types import (
    DisjointType as DisjointType,
    Lanes as Lanes,
    SlotsType as SlotsType,
    components_of as components_of,
    copied_type as copied_type,
    is_a as is_a,
    is_scalar as is_scalar,
    item_text as item_text,
    item_texts as item_texts,
    itemsize as itemsize,
    leaf_types as leaf_types,
    names_of as names_of,
    parse_type as parse_type,
    parse_types as parse_types,
    scalar_type as scalar_type,
    type_text as type_text,
    with_components as with_components,
    writable as writable,
)
from .walks import (
    Use as Use,
    definitions as definitions,
    grouped as grouped,
    map_operands as map_operands,
    remove as remove,
    replace as replace,
    replace_uses as replace_uses,
    resolved as resolved,
    uses as uses,
)
