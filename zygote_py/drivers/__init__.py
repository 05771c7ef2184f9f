"""Derivatives that are written on top of gradients and pushforwards.

Each is written for the types of its arguments, as IR or as a text in Python. It calls the derivatives that it is made
of, and so may be differentiated like any other function.
"""
