"""What all other parts of the package may use and that needs none of them."""
