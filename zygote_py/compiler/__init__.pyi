"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .border import refuse_in_pullback as refuse_in_pullback
from .device import DeviceCode as DeviceCode, compile_for_device as compile_for_device
from .item_loops import (
    Input as Input,
    ItemLoops as ItemLoops,
    Structure as Structure,
    defined as defined,
    outputs as outputs,
)
from .jvp import refuse_draws as refuse_draws
from .kernels import KernelCode as KernelCode, compile_kernel as compile_kernel
from .pipeline import (
    FLAT as FLAT,
    Compiled as Compiled,
    CompiledPullback as CompiledPullback,
    compile_gradient as compile_gradient,
    compile_pullback as compile_pullback,
    derivative_of as derivative_of,
)
from .prepare import bandwidth_of as bandwidth_of
from .request import (
    PullbackInterface as PullbackInterface,
    Request as Request,
    Wrt as Wrt,
    check_fit as check_fit,
    does_not_take as does_not_take,
    expanded as expanded,
    make_request as make_request,
    misfit as misfit,
    named_in_module as named_in_module,
    names_of as names_of,
    refuse_aux as refuse_aux,
    star_of as star_of,
    starred_dispatcher as starred_dispatcher,
    under_name as under_name,
    wrong_arguments as wrong_arguments,
)
from .script import (
    FUNCTION as FUNCTION,
    MOST_NUMBERS as MOST_NUMBERS,
    WIDTH as WIDTH,
    Script as Script,
    leaves as leaves,
    parts as parts,
    refuse_leaves as refuse_leaves,
)
from .transforms import (
    CheckedForm as CheckedForm,
    Form as Form,
    GradientForm as GradientForm,
    PushForm as PushForm,
    TraceForm as TraceForm,
    hashable as hashable,
    signature_of as signature_of,
)
