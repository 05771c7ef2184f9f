"""The text of functions: the printer, the parser, and what identifiers may be."""
