"""Faults that are put into the compiler, one at a time, to see that the quick run of the tests finds each.

    python -m tests.seeded_faults                   all of them, for hours
    python -m tests.seeded_faults shadow stack      those whose descriptions hold one of these words
    python -m tests.seeded_faults --list

For each fault the checkout is copied, a line of the copy is replaced, and pytest runs there until a test fails: the
files that are the likeliest to find it first, then all others. The table says which test found it, and after how long.
`tests.seeded_faults.test_seeded_faults` holds that every fault still applies to the code.
"""
