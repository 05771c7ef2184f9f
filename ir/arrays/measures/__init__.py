"""How much: the lengths and numbers that follow from the parameters, and the memory that a function allocates."""
