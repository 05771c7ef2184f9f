"""The formulas of rules: how they are written, parsed, conjugated, and expanded into instructions."""
