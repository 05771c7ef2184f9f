"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .dataflow import reach as reach
from .distances import Distances as Distances
from .dominators import (
    DominatorTree as DominatorTree,
    dominator_tree as dominator_tree,
    reverse_postorder as reverse_postorder,
)
from .effects import (
    effect as effect,
    is_view as is_view,
    may_write as may_write,
    reads as reads,
    writes as writes,
)
from .loops import (
    CountedLoop as CountedLoop,
    Edge as Edge,
    Loop as Loop,
    LoopNest as LoopNest,
    counted as counted,
    counted_exit as counted_exit,
    invariant as invariant,
    loop_nest as loop_nest,
    returning_blocks as returning_blocks,
)
from .memory import Memory as Memory, Order as Order
from .minimum_cut import source_side as source_side
from .subscripts import Kind as Kind
