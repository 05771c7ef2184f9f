"""Derivatives that are written in Python, on top of gradients and pushforwards.

Each is a function of the subset that is compiled, written for the types of its arguments. It calls the derivatives that
it is made of, and so may be differentiated like any other function.
"""
