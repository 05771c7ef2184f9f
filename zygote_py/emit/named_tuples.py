# mypy: ignore-errors
"""The function whose source emitted modules contain that work on dataclasses, for where this package is missing."""


def on_named_tuples(function, *made):
    """Let a compiled function take and return dataclasses, by way of NamedTuples, and replace the classes `made`."""
    from collections import namedtuple
    from dataclasses import fields, is_dataclass

    stand_ins, classes = {}, {}

    def stand_in(cls):
        if cls not in stand_ins:
            stand_ins[cls] = namedtuple(cls.__name__, [field.name for field in fields(cls)])
            classes[stand_ins[cls]] = cls
        return stand_ins[cls]

    def apart(value):
        if is_dataclass(value):
            return stand_in(type(value))(*[apart(getattr(value, field.name)) for field in fields(value)])
        return with_items(value, map(apart, value)) if isinstance(value, tuple) else value

    def together(value):
        if not isinstance(value, tuple):
            return value
        if type(value) not in classes:
            return with_items(value, map(together, value))
        made = object.__new__(classes[type(value)])
        for name in value._fields:
            object.__setattr__(made, name, together(getattr(value, name)))
        return made

    def with_items(value, items):
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)

    def called(*args):
        return together(function(*map(apart, args)))

    return called, *map(stand_in, made)
