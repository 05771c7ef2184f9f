"""Methods and functions of lists."""
