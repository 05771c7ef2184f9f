"""The verifier, the interpreter, and the checks that run after transformations."""
