"""The one door to Numba's internals: no other part of the package imports them.

    typed = typed_function(f, (types.float64, types.int64), {})   # typed statements, see zygote_py.base.statements
    dispatcher = make_dispatcher(stub, implement, {"fastmath": True})

`typed_function` gives what Numba makes of a function up to its type inference. `make_dispatcher` makes a dispatcher
that compiles, for each signature, what `implement` gives for it. Numba's errors become `DifferentiationError`s.
Nothing here knows of differentiation. What only the compiler needs is imported when it is asked for.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
