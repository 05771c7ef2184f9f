"""The dataclasses of this package behave like those of the standard library, also before their methods are written."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from zygote_py.ir.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float = 2.0
    tags: list[str] = dataclasses.field(default_factory=list, compare=False)


@dataclass(frozen=True)
class Named(Point):
    name: str = "p"

    def __repr__(self):
        return f"<{self.name}>"


@dataclass(eq=False)
class Mutable:
    items: list[int]
    total: int = dataclasses.field(init=False, default=0)

    def __post_init__(self):
        self.total = sum(self.items)


@dataclass
class Compared:
    x: int


@dataclass(frozen=True, kw_only=True)
class OwnEquality:
    x: int
    y: int

    def __eq__(self, other):
        return isinstance(other, OwnEquality) and other.x == self.x

    def __hash__(self):
        return hash(self.x)


def fresh(name):
    """A class none of whose methods have been called."""
    space = {"__annotations__": {"a": "int", "b": "int"}, "b": 3, "__module__": __name__}
    return dataclass(frozen=True, slots=True)(type(name, (), space))


@pytest.mark.parametrize(
    "use",
    [
        lambda cls: cls(1).b == 3,
        lambda cls: cls(a=1, b=2) == cls(1, 2) and cls(1) != cls(2) and cls(1) != 1,
        lambda cls: hash(cls(1)) == hash((1, 3)) and len({cls(1), cls(1, 3)}) == 1,
        lambda cls: repr(cls(1)).endswith("(a=1, b=3)"),
        lambda cls: dataclasses.replace(cls(1), b=4) == cls(1, 4),
        lambda cls: cls.__match_args__ == ("a", "b") and not hasattr(cls(1), "__dict__"),
        lambda cls: [each.name for each in dataclasses.fields(cls)] == ["a", "b"],
    ],
)
def test_each_method_may_be_the_first(use):
    assert use(fresh("Fresh"))


def test_equality_without_an_object_made_by_its_init():
    cls = fresh("Fresh")
    one, other = object.__new__(cls), object.__new__(cls)
    for each in (one, other):
        object.__setattr__(each, "a", 1)
        object.__setattr__(each, "b", 2)
    assert one == other


def test_wrong_arguments_name_the_class():
    cls = fresh("Fresh")
    for _ in range(2):
        with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required positional argument: 'a'"):
            cls()


def test_frozen_objects_do_not_change():
    for made in (Point(1.0), Named(1.0)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.x = 2.0
        with pytest.raises(dataclasses.FrozenInstanceError):
            del made.x
        assert made.x == 1.0


def test_fields_of_a_base_come_first():
    made = Named(1.0, name="q")
    assert (made.x, made.y, made.name, repr(made)) == (1.0, 2.0, "q", "<q>")
    assert made == Named(1.0, 2.0, ["not compared"], "q")
    assert made != Named(1.0)
    assert Named(1.0).tags is not Named(1.0).tags


def test_objects_that_change():
    made = Mutable([1, 2])
    assert made.total == 3
    made.total = 4
    assert made.total == 4
    assert made != Mutable([1, 2])
    assert made in {made}
    with pytest.raises(TypeError):
        hash(Compared(1))
    assert Compared(1) == Compared(1)


def test_own_methods_stay():
    assert OwnEquality(x=1, y=2) == OwnEquality(x=1, y=3)
    assert hash(OwnEquality(x=1, y=2)) == hash(1)
    with pytest.raises(TypeError):
        OwnEquality(1, 2)


@pytest.mark.parametrize("made", [Point(1.0, 3.0, ["a"]), Named(1.0, name="r"), Mutable([1])], ids=repr)
def test_copies(made):
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert dataclasses.astuple(again) == dataclasses.astuple(made)
