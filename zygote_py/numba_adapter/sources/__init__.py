"""From an object that is called to the Python function with its source, and the options it is compiled with."""
