"""OrtValue, a tensor in the host's memory, and OrtDevice."""

import math
import operator

from .errors import InvalidBinding, InvalidType
from .node_arg import dtype_of, element_type_of, is_number, onnx_type

__all__ = ["OrtDevice", "OrtValue"]

# Kernels read memory with this alignment in place.
_ALIGNMENT = 64


def check_host(device_type):
    """Raises InvalidBinding unless `device_type` is the host's memory."""
    if isinstance(device_type, OrtDevice):
        device_type = device_type.device_type()
    if device_type not in ("cpu", "Cpu", "CPU", 0):
        raise InvalidBinding("device", f"expected 'cpu', found {device_type!r}: sessions of Tessera "
                                       "read and write the host's memory")


def _dtype(element_type, location):
    dtype = dtype_of(element_type)
    if dtype is None or not is_number(dtype):
        raise InvalidBinding(location, f"expected a dtype of numbers or bools, or its number in "
                                       f"ONNX, found {element_type!r}")
    return dtype


def _checked_shape(shape, location):
    try:
        dims = tuple(operator.index(dim) for dim in shape)
    except TypeError:
        raise InvalidType(location, f"expected a list of whole numbers, found {shape!r}") from None
    if any(dim < 0 for dim in dims):
        raise InvalidBinding(location, f"expected a list of sizes of 0 or more, found {shape!r}")
    return dims


def new_array(shape, element_type, location="shape"):
    """A new array whose elements are undefined; kernels write to it in place."""
    import numpy

    dtype = _dtype(element_type, location)
    dims = _checked_shape(shape, location)
    size = math.prod(dims) * dtype.itemsize
    try:
        memory = numpy.empty(size + _ALIGNMENT, numpy.uint8)
    except (MemoryError, ValueError):  # the latter if the size has more than 63 bits
        raise InvalidBinding(location, f"expected sizes that fit the memory, found {dims}: "
                                       f"{size} bytes") from None
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(dims)


def array_over(address, shape, element_type, location):
    """An array over memory that the caller keeps alive."""
    import ctypes

    import numpy

    dtype = _dtype(element_type, location)
    dims = _checked_shape(shape, location)
    size = math.prod(dims) * dtype.itemsize
    try:
        address = operator.index(address)
    except TypeError:
        pass
    if not isinstance(address, int) or (address <= 0 and size > 0):
        raise InvalidBinding(location, f"expected the address of {size} bytes, found {address!r}")
    if size == 0:
        return numpy.empty(dims, dtype)
    memory = (ctypes.c_ubyte * size).from_address(address)
    return numpy.frombuffer(memory, numpy.uint8).view(dtype).reshape(dims)


def checked_array(array, location):
    """A NumPy array as it is, or a dense copy of it. Raises InvalidBinding for anything else."""
    import numpy

    if not isinstance(array, numpy.ndarray) or not is_number(array.dtype):
        raise InvalidBinding(location, f"expected a NumPy array of numbers or bools, found "
                                       f"{type(array).__name__}"
                                       + (f" of dtype {array.dtype}"
                                          if isinstance(array, numpy.ndarray) else ""))
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array if array.flags.c_contiguous else numpy.array(array, order="C")


class OrtDevice:
    """A device; sessions of Tessera take and give memory of the host only."""

    def __init__(self, device_type, device_id=0):
        self._type = device_type
        self._id = device_id

    @staticmethod
    def make(ort_device_name, device_id, vendor_id=-1):
        """The device with this name and number."""
        check_host(ort_device_name)
        return OrtDevice(0, device_id)

    @staticmethod
    def cpu():
        """The number of the host's type of device."""
        return 0

    def device_type(self):
        return self._type

    def device_id(self):
        return self._id


class OrtValue:
    """A tensor. Made by the class methods; `numpy()` shares its memory."""

    def __init__(self, array):
        self._array = array

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj, device_type="cpu", device_id=0, vendor_id=-1):
        """A tensor over the memory of an array, or over a copy if the array is not dense."""
        check_host(device_type)
        return cls(checked_array(numpy_obj, "OrtValue"))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data, onnx_element_type):
        """A tensor over an array of another type than in ONNX, such as uint16 for bfloat16 (16)."""
        dtype = _dtype(onnx_element_type, "OrtValue")
        array = checked_array(data, "OrtValue")
        if dtype.itemsize != array.dtype.itemsize:
            raise InvalidBinding("OrtValue", f"expected elements of {dtype.itemsize} bytes for "
                                             f"{dtype}, found {array.dtype}")
        return cls(array.view(dtype))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape, element_type, device_type="cpu", device_id=0,
                                     vendor_id=-1):
        """A tensor whose elements are undefined."""
        check_host(device_type)
        return cls(new_array(shape, element_type, "OrtValue"))

    @classmethod
    def from_dlpack(cls, data):
        """A tensor over the memory of an array of another library."""
        import numpy

        return cls(checked_array(numpy.from_dlpack(data), "OrtValue"))

    def numpy(self):
        """The tensor as an array that shares its memory."""
        return self._array

    def __array__(self, dtype=None, copy=None):
        import numpy

        if dtype is None and not copy:
            return self._array
        if copy is False and numpy.dtype(dtype) != self._array.dtype:
            raise ValueError(f"an OrtValue of {self._array.dtype} cannot be read as {dtype} without "
                             "a copy")
        return self._array.astype(dtype or self._array.dtype, copy=bool(copy))

    def __dlpack__(self, **wishes):
        return self._array.__dlpack__(**{name: wish for name, wish in wishes.items()
                                         if wish is not None})

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def shape(self):
        return list(self._array.shape)

    def data_type(self):
        """The type in ONNX's notation: "tensor(float)"."""
        return onnx_type(self._array.dtype.name)

    def element_type(self):
        """The number of the element type in ONNX's TensorProto.DataType."""
        return element_type_of(self._array.dtype.name)

    def tensor_size_in_bytes(self):
        return self._array.nbytes

    def device_name(self):
        return "cpu"

    def data_ptr(self):
        """The address of the elements."""
        return self._array.ctypes.data

    def has_value(self):
        return True

    def is_tensor(self):
        return True

    def is_sparse_tensor(self):
        return False

    def is_tensor_sequence(self):
        return False

    def update_inplace(self, data):
        """Copies an array, or another OrtValue, of the same type and number of bytes into the
        tensor."""
        given = checked_array(data.numpy() if isinstance(data, OrtValue) else data, "OrtValue")
        mine = self._array
        if given.nbytes != mine.nbytes or given.dtype != mine.dtype:
            raise InvalidBinding("OrtValue", f"expected an array of {mine.dtype} "
                                             f"{list(mine.shape)}, found {given.dtype} "
                                             f"{list(given.shape)}")
        if not mine.flags.writeable:
            raise InvalidBinding("OrtValue", "expected memory that may be written, found a "
                                             "read-only array")
        mine[...] = given.reshape(mine.shape)

    def __repr__(self):
        return f"<OrtValue {self.data_type()} {self.shape()}>"
