"""Special functions that rules call, whose source is emitted along with derivatives."""
