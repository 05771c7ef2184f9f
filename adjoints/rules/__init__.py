"""The rules: what each callable contributes to the adjoint of each of its inputs."""
