"""Forward mode: tangents, and the sets of indices that sparsity patterns are made from."""
