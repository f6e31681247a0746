"""What a case of bench/operators.py is, and the values of its inputs."""

import dataclasses

import numpy as np

MICROSOFT = "com.microsoft"
ML = "ai.onnx.ml"


@dataclasses.dataclass(frozen=True)
class Case:
    """One use of an op. Each input is a function of a random generator that returns an array, a
    Fixed, which becomes a constant of the model, or None."""

    op: str
    inputs: dict       # "small" and "large" -> list of inputs; () if there is no such case
    attributes: dict   # values may be an Either
    domain: str = ""
    outputs: int = 1
    opset: int = 0     # 0: the newest that both runtimes know
    note: str = ""     # distinguishes cases of one op
    is_random: bool = False  # no two programs give the same values

    @property
    def name(self):
        prefix = {"": "", MICROSOFT: "microsoft.", ML: "ml."}.get(self.domain, self.domain + ".")
        return f"{prefix}{self.op}{' ' + self.note if self.note else ''}"


@dataclasses.dataclass(frozen=True)
class Fixed:
    """An input that is a constant."""

    value: object


@dataclasses.dataclass(frozen=True)
class Either:
    """An attribute that depends on the size."""

    small: object
    large: object


def case(op, small, large, *, domain="", outputs=1, opset=0, note="", is_random=False,
         attributes=None, **more):
    """`more` are attributes too, of other names than these parameters have."""
    return Case(op, {"small": small, "large": large}, {**(attributes or {}), **more}, domain,
                outputs, opset, note, is_random)


def contrib(op, small, large, **more):
    return case(op, small, large, domain=MICROSOFT, **more)


# --- Inputs ---


def f(*dims, dtype=np.float32):
    """Numbers from the normal distribution."""
    return lambda source: source.standard_normal(dims, np.float32).astype(dtype)


def u(low, high, *dims, dtype=np.float32):
    """Numbers from the uniform distribution."""
    return lambda source: source.uniform(low, high, dims).astype(dtype)


def i(limit, *dims, dtype=np.int64, least=0):
    """Integers in [least, limit)."""
    return lambda source: source.integers(least, limit, dims).astype(dtype)


def b(*dims, share=0.5):
    """Booleans of which this share is true."""
    return lambda source: source.random(dims) < share


def v(values, dtype=np.int64):
    """These values, as a constant."""
    return Fixed(lambda source: np.array(values, dtype))


def c(values):
    """The values of another input as a constant."""
    return Fixed(values)


def words(count, *dims):
    """Strings of about 6 letters, of `count` different ones."""
    def make(source):
        known = ["".join(chr(97 + letter) for letter in source.integers(0, 26, 6))
                 for _ in range(count)]
        return np.array(known, object)[source.integers(0, count, dims)]
    return make
