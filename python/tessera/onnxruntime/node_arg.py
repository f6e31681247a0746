"""The descriptions of a session's model: NodeArg, ModelMetadata."""

from dataclasses import dataclass, field

from tessera._core import did_you_mean

__all__ = ["ModelMetadata", "NodeArg"]

# ONNX's names and numbers of element types, and NumPy's names.
_ELEMENT_TYPES = (
    ("float", 1, "float32"),
    ("uint8", 2, "uint8"),
    ("int8", 3, "int8"),
    ("uint16", 4, "uint16"),
    ("int16", 5, "int16"),
    ("int32", 6, "int32"),
    ("int64", 7, "int64"),
    ("string", 8, "object"),
    ("bool", 9, "bool"),
    ("float16", 10, "float16"),
    ("double", 11, "float64"),
    ("uint32", 12, "uint32"),
    ("uint64", 13, "uint64"),
    ("bfloat16", 16, "bfloat16"),
    ("float8e4m3fn", 17, "float8_e4m3fn"),
    ("float8e4m3fnuz", 18, "float8_e4m3fnuz"),
    ("float8e5m2", 19, "float8_e5m2"),
    ("float8e5m2fnuz", 20, "float8_e5m2fnuz"),
    ("uint4", 21, "uint4"),
    ("int4", 22, "int4"),
    ("float4e2m1", 23, "float4_e2m1fn"),
    ("float8e8m0", 24, "float8_e8m0fnu"),
    ("uint2", 25, "uint2"),
    ("int2", 26, "int2"),
)
# What NumPy does not have itself.
_ADDED = frozenset(dtype for _, number, dtype in _ELEMENT_TYPES if number >= 16)
_DTYPES = {name: dtype for name, _, dtype in _ELEMENT_TYPES}
_NAMES = {dtype: name for name, _, dtype in _ELEMENT_TYPES}
_DTYPES_BY_NUMBER = {number: dtype for _, number, dtype in _ELEMENT_TYPES}
_NUMBERS = {dtype: number for _, number, dtype in _ELEMENT_TYPES}


def numpy_dtype(name):
    """The dtype with this name in NumPy, or in the package ml_dtypes ("bfloat16", "int4")."""
    import numpy

    if name not in _ADDED:
        return numpy.dtype(name)
    import ml_dtypes

    return numpy.dtype(getattr(ml_dtypes, name))


def dtype_of(given):
    """The dtype of a tensor's type in ONNX's notation ("tensor(float)"), of a number of ONNX's
    TensorProto.DataType, or of any value that NumPy accepts as a dtype; None if there is none."""
    if isinstance(given, str) and given.startswith("tensor("):
        name = _DTYPES.get(given[len("tensor("):-1])
        return name and numpy_dtype(name)
    if isinstance(given, int) and not isinstance(given, bool):
        name = _DTYPES_BY_NUMBER.get(given)
        return name and numpy_dtype(name)
    import numpy

    try:
        return numpy.dtype(given)
    except TypeError:
        return None


def is_added(dtype):
    """Whether a dtype is one that only the package ml_dtypes has."""
    return dtype.name in _ADDED


def is_number(dtype):
    """Whether a dtype is one of ONNX's types of numbers, or bool: others have no memory to share."""
    return not dtype.hasobject and dtype.name in _NUMBERS


def holds_tensors(onnx_type_name):
    """Whether a type in ONNX's notation is a tensor of numbers, bools or strings, or a sequence,
    optional or map of such."""
    if "map(" in onnx_type_name:
        return True
    for container in ("optional(", "seq("):
        if onnx_type_name.startswith(container):
            onnx_type_name = onnx_type_name.removeprefix(container).removesuffix(")")
    name = onnx_type_name.removeprefix("tensor(").removesuffix(")")
    return onnx_type_name.startswith("tensor(") and name in _DTYPES


def onnx_type(dtype):
    """The type of a tensor in ONNX's notation, by NumPy's name of its dtype: "tensor(float)"."""
    return f"tensor({_NAMES.get(dtype, dtype)})"


def element_type_of(dtype):
    """The number of a dtype in ONNX's TensorProto.DataType, by NumPy's name; 0 if it has none."""
    return _NUMBERS.get(dtype, 0)


@dataclass(frozen=True)
class NodeArg:
    """An input, output or overridable initializer of a session's model."""

    name: str
    type: str  # in ONNX's notation: "tensor(float)"
    shape: list  # a number, the name of an unknown dimension, or None for one without a name

    def __str__(self):
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


@dataclass(frozen=True)
class ModelMetadata:
    """The metadata in a model's file."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict = field(default_factory=dict)


def listed(names):
    """The names, shortened for an error, because a model may have thousands."""
    most = 20
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more


def one_of(name, known):
    """For an error about a name that is not known: "one of x, y; did you mean 'x'?"."""
    name = str(name).encode(errors="backslashreplace").decode()
    return f"one of {listed(known)}, found no such name{did_you_mean(name, known)}"


def with_sizes(shape, sizes):
    """A declared shape, with numbers for the dimensions that `sizes` names."""
    return [sizes.get(dim, dim) if isinstance(dim, str) else dim for dim in shape or ()]


def input_arg(declared, sizes):
    """A NodeArg of an input's entry in _core.read_metadata()."""
    name, type_text, shape, _ = declared
    return NodeArg(name, type_text, with_sizes(shape, sizes))


def output_arg(declared, described, names, sizes):
    """A NodeArg of an output's entry in _core.read_metadata(). Undeclared parts come from its
    ValueDescription; `names` are the names of dimensions that occur in the file."""
    name, type_text, shape, _ = declared
    inferred = described.shape
    if not type_text:
        type_text = onnx_type(described.type)
    if inferred is None or (shape is not None and len(shape) != len(inferred)):
        return NodeArg(name, type_text, with_sizes(shape, sizes))

    def known(declared_dim, inferred_dim):
        if declared_dim is not None:
            return declared_dim
        return inferred_dim if isinstance(inferred_dim, int) or inferred_dim in names else None

    shape = shape or [None] * len(inferred)
    merged = [known(*dims) for dims in zip(shape, inferred, strict=True)]
    return NodeArg(name, type_text, with_sizes(merged, sizes))
