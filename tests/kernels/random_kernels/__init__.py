"""Random kernels, the adjoint of each against differences: `python -m tests.kernels.random_kernels --count 2000`.

    case.py         a kernel, its arrays, its features    families/   what kernels are made of
    writer.py       text, and what a scope knows          check.py    one kernel against the reference
    expressions.py  bounded random expressions            races.py    who reads and writes which element
    statements.py   branches, loops, device functions     simulator.py  threads in any order
    runner.py       many kernels on several processes, and the report

All of it runs in Python, with NUMBA_ENABLE_CUDASIM=1: no device is needed, and Numba compiles nothing.
"""
