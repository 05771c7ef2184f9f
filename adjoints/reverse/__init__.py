"""The adjoint of one function: shadows, alphas, the reverse sweep, and how both halves are joined and split."""
