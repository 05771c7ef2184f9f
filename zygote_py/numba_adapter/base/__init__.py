"""Private names of Numba, messages, walks over its IR, and facts about its types."""
