"""A repr() for dataclasses that fits a line, however many elements their lists have."""

import dataclasses

# Longer values are cut or counted.
_MAX_LETTERS = 60


class ShortRepr:
    """The base class of dataclasses that are made with repr=False."""

    def __repr__(self) -> str:
        fields = ", ".join(f"{field.name}={_short(getattr(self, field.name))}"
                           for field in dataclasses.fields(self))
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
