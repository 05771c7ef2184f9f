"""Values during lowering: bundles of operands, their trees, iterations over them, and the interface of the builder."""
