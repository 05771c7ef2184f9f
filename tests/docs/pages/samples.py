"""One call of each callable that Numba knows, from which docs/numpy.md determines its outcome.

The arguments are the parameters in `PARAMETERS`; statements before the result are separated by semicolons. An array
that is there to be written to is written to. A draw has constant parameters: those that have a derivative are refused.
"""

from __future__ import annotations

from numba import types

from zygote_py.ir import Type

PARAMETERS: dict[str, Type] = {
    "u": types.float64,
    "v": types.float64,
    "x": types.float64[::1],
    "m": types.float64[:, ::1],
    "z": types.complex128,
    "w": types.complex128[::1],
    "n": types.int64,
    "k": types.int64[::1],
    "b": types.boolean[::1],
}
_BY_ARGUMENTS = {
    "u": """
        np.abs np.acos np.acosh np.all np.amax np.amin np.any np.arcsin np.arcsinh np.arctan np.arctanh np.argwhere
        np.around np.array np.asarray np.ascontiguousarray np.asfortranarray np.average np.bool np.byte np.cbrt
        np.cdouble np.ceil np.complex64 np.conj np.cos np.cosh np.cumsum np.deg2rad np.degrees np.diagflat np.double
        np.ediff1d np.exp np.exp2 np.expm1 np.fabs np.flatnonzero np.float32 np.floor np.int16 np.int32 np.int64
        np.iscomplex np.iscomplexobj np.isfinite np.isinf np.isnan np.isneginf np.isposinf np.isreal np.isrealobj
        np.isscalar np.log np.log10 np.log1p np.log2 np.logical_not np.max np.mean np.min np.nan_to_num np.nanmax
        np.nanmin np.negative np.positive np.prod np.ptp np.rad2deg np.radians np.real np.reciprocal np.rint
        np.round np.sign np.signbit np.sin np.sinc np.sinh np.size np.spacing np.sqrt np.square np.sum np.tan
        np.tanh np.trunc np.ubyte np.uint np.uint16 np.uint32 np.random.geometric np.random.logseries
        np.random.poisson np.random.zipf math.acos math.acosh math.asin math.asinh math.atan math.atanh math.ceil
        math.cos math.cosh math.degrees math.erf math.erfc math.exp math.exp2 math.expm1 math.fabs math.floor
        math.frexp math.gamma math.isfinite math.isinf math.isnan math.lgamma math.log math.log10 math.log1p
        math.log2 math.radians math.sin math.sinh math.sqrt math.tan math.tanh math.trunc cmath.acos cmath.asin
        cmath.asinh cmath.atan cmath.atanh cmath.cos cmath.exp cmath.isfinite cmath.isinf cmath.isnan cmath.log
        cmath.sin cmath.sqrt cmath.tan abs bool complex float int max min round
    """,
    "u, v": """
        np.add np.allclose np.append np.arctan2 np.array_equal np.copysign np.divide np.divmod np.equal np.extract
        np.float_power np.floor_divide np.fmax np.fmin np.fmod np.full_like np.geomspace np.greater np.greater_equal
        np.hypot np.intersect1d np.isclose np.isin np.kron np.less np.less_equal np.linspace np.logaddexp
        np.logaddexp2 np.logical_and np.logical_or np.logical_xor np.logspace np.maximum np.minimum np.mod
        np.multiply np.nanpercentile np.nanquantile np.nextafter np.not_equal np.outer np.percentile np.pow
        np.quantile np.setdiff1d np.setxor1d np.subtract np.random.negative_binomial math.atan2 math.copysign
        math.gcd math.hypot math.ldexp math.nextafter math.pow cmath.rect pow
    """,
    "x, n": """
        np.argpartition np.broadcast_to np.delete np.expand_dims np.ldexp np.partition np.repeat np.reshape
        np.resize np.roll np.take
    """,
    "x": """
        np.argsort np.asarray_chkfinite np.atleast_1d np.atleast_2d np.atleast_3d np.count_nonzero np.cumprod
        np.diag np.diff np.flip np.flipud np.frombuffer np.median np.nanargmax np.nanargmin np.nancumprod
        np.nancumsum np.nanmean np.nanmedian np.nanprod np.nanstd np.nansum np.nanvar np.nonzero np.permute_dims
        np.ravel np.roots np.sort np.trapezoid np.trim_zeros np.unique np.vander np.var np.linalg.matrix_rank
        np.linalg.norm sum
    """,
    "n": """
        np.bartlett np.bitwise_invert np.blackman np.broadcast_shapes np.eye np.hamming np.hanning np.identity
        np.tri np.random.rand np.random.randint np.random.randn np.random.random np.random.random_sample
        np.random.ranf np.random.sample np.random.seed np.random.standard_cauchy np.random.standard_exponential
        np.random.standard_normal
    """,
    "n, n": """
        np.bitwise_and np.bitwise_left_shift np.bitwise_or np.bitwise_right_shift np.bitwise_xor np.gcd np.lcm
        np.random.binomial
    """,
    "x, x, x": """
        np.clip np.interp
    """,
    "(x, x)": """
        np.column_stack np.concat np.dstack np.hstack np.row_stack np.stack np.vstack
    """,
    "x, x": """
        np.convolve np.cross np.dot np.vdot
    """,
    "m": """
        np.fliplr np.rot90 np.trace np.linalg.cholesky np.linalg.cond np.linalg.det np.linalg.eig np.linalg.eigh
        np.linalg.eigvals np.linalg.eigvalsh np.linalg.inv np.linalg.pinv np.linalg.qr np.linalg.slogdet
        np.linalg.svd
    """,
    "x, k, n": """
        np.insert
    """,
    "m, m": """
        np.linalg.lstsq np.linalg.solve
    """,
    "m, n": """
        np.linalg.matrix_power
    """,
    "u, v, v": """
        np.random.hypergeometric
    """,
    "n, x": """
        np.random.multinomial
    """,
    "z": """
        cmath.acosh cmath.cosh cmath.log10 cmath.phase cmath.polar cmath.sinh cmath.tanh
    """,
}
# Those of attributes and methods of arrays by their names with a point.
SAMPLES = {
    **{name: f"{name}({given})" for given, names in _BY_ARGUMENTS.items() for name in names.split()},
    ".T": "m.T",
    ".all": "x.all()",
    ".allclose": "x.allclose(x)",
    ".any": "x.any()",
    ".argmax": "x.argmax()",
    ".argmin": "x.argmin()",
    ".argsort": "x.argsort()",
    ".astype": "x.astype(np.float32)",
    ".clip": "x.clip(0.0, 1.0)",
    ".conj": "w.conj()",
    ".conjugate": "w.conjugate()",
    ".copy": "x.copy()",
    ".ctypes": "x.ctypes.data",
    ".cumprod": "x.cumprod()",
    ".cumsum": "x.cumsum()",
    ".dot": "x.dot(x)",
    ".dtype": "np.zeros(n, x.dtype)",
    ".fill": "a = np.zeros(n); a.fill(u); a",
    ".flags": "x.flags.c_contiguous",
    ".flat": "x.flat[0]",
    ".flatten": "m.flatten()",
    ".imag": "w.imag",
    ".item": "x[:1].item()",
    ".itemsize": "x.itemsize",
    ".max": "x.max()",
    ".mean": "x.mean()",
    ".min": "x.min()",
    ".nbytes": "x.nbytes",
    ".ndim": "x.ndim",
    ".nonzero": "x.nonzero()[0]",
    ".prod": "x.prod()",
    ".ravel": "m.ravel()",
    ".real": "w.real",
    ".repeat": "x.repeat(2)",
    ".reshape": "x.reshape((n, 1))",
    ".shape": "x.shape[0]",
    ".size": "x.size",
    ".sort": "a = np.copy(x); a.sort(); a",
    ".std": "x.std()",
    ".strides": "x.strides[0]",
    ".sum": "x.sum()",
    ".take": "x.take(k)",
    ".tobytes": "len(x.tobytes())",
    ".transpose": "m.transpose()",
    ".var": "x.var()",
    ".view": "w.view(np.float64)",
    "bytes": "len(bytes(b'ab'))",
    "chr": "ord(chr(n))",
    "dict": "dict([(1, u)])[1]",
    "divmod": "divmod(u, v)[1]",
    "enumerate": "s = 0.0; for i, a in enumerate(x): s += a; s",
    "filter": "list(filter(lambda a: a > 0.0, x))[0]",
    "getattr": 'getattr(z, "real")',
    "hasattr": 'hasattr(x, "size")',
    "hash": "hash(u)",
    "isinstance": "isinstance(u, float)",
    "iter": "next(iter(x))",
    "len": "len(x)",
    "list": "list(x)[0]",
    "map": "list(map(lambda a: a * a, x))[0]",
    "next": "next(iter(x))",
    "np.angle": "np.angle(z)",
    "np.arange": "np.arange(u, v, 0.5)",
    "np.argmax": "np.argmax(x)",
    "np.argmin": "np.argmin(x)",
    "np.array_split": "np.array_split(x, 2)[0]",
    "np.bincount": "np.bincount(k, x)",
    "np.broadcast_arrays": "np.broadcast_arrays(x, m)[0]",
    "np.copy": "np.copy(x)",
    "np.corrcoef": "np.corrcoef(m)",
    "np.correlate": "np.correlate(x, x)",
    "np.cov": "np.cov(m)",
    "np.digitize": "np.digitize(x, x)",
    "np.dsplit": "np.dsplit(m.reshape((2, 2, 2)), 2)[0]",
    "np.dtype": "np.zeros(n, np.dtype(np.float32))",
    "np.empty": "a = np.empty(n); a[0] = u; a",
    "np.empty_like": "a = np.empty_like(x); a[0] = u; a",
    "np.fill_diagonal": "a = np.zeros((3, 3)); np.fill_diagonal(a, u); a",
    "np.finfo": "np.finfo(np.float64).eps",
    "np.full": "np.full(n, u)",
    "np.histogram": "np.histogram(x)[1]",
    "np.hsplit": "np.hsplit(x, 2)[0]",
    "np.iinfo": "np.iinfo(np.int64).max",
    "np.imag": "np.imag(z)",
    "np.indices": "np.indices((2, 3))",
    "np.isnat": "np.isnat(x)",
    "np.kaiser": "np.kaiser(n, u)",
    "np.moveaxis": "np.moveaxis(m, 0, 1)",
    "np.ndenumerate": "s = 0.0; for i, a in np.ndenumerate(x): s += a; s",
    "np.ndindex": "s = 0; for i in np.ndindex(2, 3): s += i[0]; s",
    "np.nditer": "s = 0.0; for a in np.nditer(x): s += a.item(); s",
    "np.ones": "a = np.ones(n); a[0] = u; a",
    "np.ones_like": "a = np.ones_like(x); a[0] = u; a",
    "np.random.beta": "np.random.beta(0.5, 0.5)",
    "np.random.chisquare": "np.random.chisquare(2.0)",
    "np.random.choice": "np.random.choice(x)",
    "np.random.dirichlet": "np.random.dirichlet(np.ones(2))",
    "np.random.exponential": "np.random.exponential(0.5)",
    "np.random.f": "np.random.f(2.0, 2.0)",
    "np.random.gamma": "np.random.gamma(0.5)",
    "np.random.gumbel": "np.random.gumbel(0.5, 0.5)",
    "np.random.laplace": "np.random.laplace(0.5, 0.5)",
    "np.random.logistic": "np.random.logistic(0.5, 0.5)",
    "np.random.lognormal": "np.random.lognormal(0.5, 0.5)",
    "np.random.noncentral_chisquare": "np.random.noncentral_chisquare(2.0, 0.5)",
    "np.random.normal": "np.random.normal(0.5, 0.5)",
    "np.random.pareto": "np.random.pareto(0.5)",
    "np.random.permutation": "np.random.permutation(x)",
    "np.random.power": "np.random.power(0.5)",
    "np.random.rayleigh": "np.random.rayleigh(0.5)",
    "np.random.shuffle": "a = np.copy(x); np.random.shuffle(a); a",
    "np.random.standard_gamma": "np.random.standard_gamma(0.5)",
    "np.random.standard_t": "np.random.standard_t(2.0)",
    "np.random.triangular": "np.random.triangular(0.0, 0.5, 1.0)",
    "np.random.uniform": "np.random.uniform(0.0, 1.0)",
    "np.random.vonmises": "np.random.vonmises(0.5, 0.5)",
    "np.random.wald": "np.random.wald(0.5, 0.5)",
    "np.random.weibull": "np.random.weibull(0.5)",
    "np.searchsorted": "np.searchsorted(x, u)",
    "np.select": "np.select((x > 0, x < 1), (x, x))",
    "np.shape": "np.shape(x)[0]",
    "np.split": "np.split(x, 2)[0]",
    "np.std": "np.std(x)",
    "np.swapaxes": "np.swapaxes(m, 0, 1)",
    "np.take_along_axis": "np.take_along_axis(x, k, 0)",
    "np.tril": "np.tril(m)",
    "np.tril_indices": "np.tril_indices(3)[0]",
    "np.tril_indices_from": "np.tril_indices_from(m)[0]",
    "np.triu": "np.triu(m)",
    "np.triu_indices": "np.triu_indices(3)[0]",
    "np.triu_indices_from": "np.triu_indices_from(m)[0]",
    "np.union1d": "np.union1d(x, x)",
    "np.unwrap": "np.unwrap(x)",
    "np.vsplit": "np.vsplit(m, 2)[0]",
    "np.where": "np.where(b, x, x)",
    "np.zeros": "a = np.zeros(n); a[0] = u; a",
    "np.zeros_like": "a = np.zeros_like(x); a[0] = u; a",
    "ord": 'ord("a")',
    "print": "print(u); 0",
    "range": "s = 0.0; for i in range(n): s += u * i; s",
    "repr": "len(repr(u))",
    "set": "len(set(k))",
    "slice": "x[slice(0, n)]",
    "sorted": "sorted(x)[0]",
    "str": "len(str(n))",
    "tuple": "tuple((u, v))[0]",
    "type": "type(u)(n)",
    "zip": "s = 0.0; for a, c in zip(x, x): s += a * c; s",
}
