"""`python -m tests.random_programs`: see `tests.random_programs.runner`."""

from tests.random_programs.runner import main

if __name__ == "__main__":
    raise SystemExit(main())
