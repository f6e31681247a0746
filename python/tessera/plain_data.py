"""The base class of descriptions: immutable dataclasses that compare by value, and whose repr() fits a
line, however many elements their lists have.

`dataclass` would write these methods anew for each class, as text that it compiles: a third of the time
of `import tessera`.
"""

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    def dataclass_transform(**_):
        return lambda function: function

# Longer values are cut or counted.
_MAX_LETTERS = 60


@dataclass_transform(frozen_default=True)
def plain_data(cls):
    """Makes a dataclass of a subclass of PlainData."""
    return dataclasses.dataclass(init=False, repr=False, eq=False)(cls)


class PlainData:
    """A class with the decorator plain_data inherits from this one."""

    def __init__(self, *values, **named):
        fields = self.__dataclass_fields__
        if len(values) > len(fields):
            raise TypeError(f"{type(self).__name__}() takes {len(fields)} values, found {len(values)}")
        given = dict(zip(fields, values, strict=False))
        for name in named:
            if name in given or name not in fields:
                raise TypeError(f"{type(self).__name__}() got {'two values' if name in given else 'a value'} "
                                f"for '{name}'{'' if name in given else ', which is none of its fields'}")
        given.update(named)
        if len(given) < len(fields):
            for name, field in fields.items():
                if name in given:
                    continue
                if field.default is dataclasses.MISSING:
                    raise TypeError(f"{type(self).__name__}() lacks a value for '{name}'")
                given[name] = field.default
        self.__dict__.update(given)

    def __setattr__(self, name, value):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field '{name}'")

    def __delattr__(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field '{name}'")

    def _values(self) -> tuple:
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def __eq__(self, other):
        return self._values() == other._values() if type(other) is type(self) else NotImplemented

    def __hash__(self):
        return hash(self._values())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={_short(getattr(self, name))}" for name in self.__dataclass_fields__)
        return f"{type(self).__name__}({fields})"


def _short(value) -> str:
    if dataclasses.is_dataclass(value):
        return f"{type(value).__name__}(...)"
    if isinstance(value, str):
        return repr(value if len(value) <= _MAX_LETTERS else value[:_MAX_LETTERS - 3] + "...")
    if isinstance(value, list | tuple | dict) and value:
        some = next(iter(value.values() if isinstance(value, dict) else value))
        is_small = len(value) < _MAX_LETTERS and not dataclasses.is_dataclass(some)
        text = repr(value) if is_small else ""
        if not text or len(text) > _MAX_LETTERS:
            left, right = ("{", "}") if isinstance(value, dict) else ("[", "]")
            return f"{left}{len(value)} {type(some).__name__}{right}"
        return text
    return repr(value)
