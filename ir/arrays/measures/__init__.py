"""How much: lengths and numbers that follow from the parameters, memory that is allocated, elements reached."""
