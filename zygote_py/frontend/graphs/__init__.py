"""The control-flow graph of typed statements, before and after it is lowered."""
