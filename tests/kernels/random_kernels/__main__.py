"""`python -m tests.kernels.random_kernels`: see `tests.kernels.random_kernels.runner`."""

import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # before Numba is imported

from tests.kernels.random_kernels.runner import main

if __name__ == "__main__":
    raise SystemExit(main())
