"""Random programs, each gradient against differences at 50 digits: `python -m tests.random_programs --count 10000`.

    expressions.py   bounded random expressions          check.py    one program against the reference
    arrays.py        the same of arrays, and writes      sharing.py  a program whose arrays share memory
    generator.py     whole programs and their inputs     shrink.py   a failing program made small
    second.py        second derivatives of a program     nested.py   derivatives that a program takes itself
    steering.py      masks, arrays of indices and counters that change
    callees.py       what Numba's decorators make of functions, and functions that stand in for that
    dicts.py         dicts that are made, changed and passed on; their entries and the loops over them have files
    runner.py        many programs on several processes, and the report

The programs cover scalars, control flow, and arrays that are read, made, viewed, swapped and written to, and
dicts if these are asked for.
"""
