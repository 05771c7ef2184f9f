"""The values that the reverse sweep needs of the forward sweep: stored, recomputed or made late."""
