"""The construction of functions: instructions, SSA form, loop nests, copies, and edits of the control flow."""
