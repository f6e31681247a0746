"""The place where programs look for onnxruntime's exceptions."""

from . import onnxruntime_pybind11_state

_pybind_state = onnxruntime_pybind11_state
