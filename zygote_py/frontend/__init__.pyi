"""The names that other folders import, and the modules that define them; each is imported when it is first used."""

from .derived import Derived as Derived, typed_as_derived as typed_as_derived
from .lowered import LoweredFunction as LoweredFunction, lower as lower, lower_typed as lower_typed
from .writer import Writer as Writer
