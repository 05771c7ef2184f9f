"""What several families of NumPy functions share: the registration of overloads, and selection by comparison."""
