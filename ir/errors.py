"""What goes wrong inside the compiler, apart from the mistakes of its users."""


class InternalError(Exception):
    """A fault of the compiler itself: an invariant of the IR does not hold."""
