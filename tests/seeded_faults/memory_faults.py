"""Faults of the analyses of memory: of elements, and of arrays that rounds of loops make."""

from __future__ import annotations

from tests.seeded_faults.fault import fault

MEMORY_FAULTS = (
    fault(
        "an element is read again though an index may count from the end",
        "ir/analysis/distances.py",
        "return least is not None and least >= 0",
        "return least is not None and least >= -9",
        "adjoints/reverse/test_elements_apart",
    ),
    fault(
        "an element is read again though a later round of the loop writes to it",
        "ir/analysis/distances.py",
        "is_later = loop is self._later and side is _WRITE",
        "is_later = False",
        "adjoints/reverse/test_elements_apart",
    ),
    fault(
        "an array is taken for one that its round has made though it may be another",
        "ir/analysis/memory.py",
        "return all(isinstance(base, Instr) and is_fresh(base) for base in self._bases_in(loop, array))",
        "return any(isinstance(base, Instr) and is_fresh(base) for base in self._bases_in(loop, array))",
        "adjoints/reverse/test_new_array_each_round",
    ),
    fault(
        "a shadow is made late though what the loop ends with is written to",
        "adjoints/reverse/stored/late_shadows.py",
        "if block not in reachable:",
        "if block not in loop:",
        "adjoints/reverse/test_new_array_each_round",
    ),
    fault(
        "an array of a branch is made again where the branch may not have been taken",
        "adjoints/reverse/split.py",
        "return {each for each in arrays if not is_after(",
        "return {each for each in arrays[:0] if not is_after(",
        "adjoints/routines/test_joined_records",
    ),
    fault(
        "records of several lengths are rows of one array",
        "adjoints/reverse/stored/joined_records.py",
        "*((size.op, size.args) if isinstance(size, Instr)",
        "*((size.op,) if isinstance(size, Instr)",
        "adjoints/routines/test_joined_records",
    ),
    fault(
        "an array that was made before a product is taken for a later one",
        "ir/analysis/memory.py",
        "or not self._is_after_any(loop, there, self._bases_in(loop, array))",
        "or self._is_after_any(loop, there, self._bases_in(loop, array))",
        "adjoints/reverse/test_kept_contents",
    ),
    fault(
        "what is not finite is gathered though a selection has left it out",
        "adjoints/rules/arrays/gathered.py",
        "    if are_finite(a):\n        return gather(",
        "    if a.size:\n        return gather(",
        "adjoints/rules/test_gathered",
    ),
    fault(
        "an array is taken to be made after itself",
        "ir/analysis/memory.py",
        "each == there or self._is_in_its_round(",
        "self._is_in_its_round(",
        "adjoints/reverse/test_kept_contents",
    ),
    fault(
        "a write is not undone though what it replaces is read before",
        "adjoints/reverse/stored/rewinding.py",
        "        before = reach(own.loop.entering, self._preds.__getitem__, alike)\n",
        "        before = own.loop.entering\n",
        "adjoints/reverse/test_undone_writes",
        "adjoints/reverse/test_rewinding",
    ),
    fault(
        "a write is not undone though another one goes to fewer elements",
        "adjoints/reverse/stored/rewinding.py",
        "            if each.elements == own.elements\n",
        "            if each.elements[0] is own.elements[0]\n",
        "adjoints/reverse/test_undone_writes",
    ),
    fault(
        "a write within the loop of another one to the same elements is not undone",
        "adjoints/reverse/stored/rewinding.py",
        "            and (each.loop is own.loop or own.loop.header not in each.loop)\n",
        "",
        "adjoints/reverse/test_undone_writes",
    ),
    fault(
        "rows of a triangle that do not exist have a place",
        "adjoints/reverse/stored/record_axes.py",
        "    missing = _half(least,",
        "    missing = _half(_ZERO,",
        "adjoints/reverse/test_triangular_records",
    ),
    fault(
        "a root that has no adjoint is a constant factor of a divisor",
        "adjoints/reverse/divisors.py",
        "                    return base, 1.5 * inner\n",
        "                    return base, inner\n",
        "adjoints/reverse/test_divisors",
    ),
    fault(
        "steps to a divisor may be used otherwise",
        "adjoints/reverse/divisors.py",
        "        if not self._steps.issuperset(use.user for use in self._used[operand]):\n",
        "        if not self._used[operand]:\n",
        "adjoints/reverse/test_divisors",
    ),
)
