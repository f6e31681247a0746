"""IOBinding: the memory that a session reads and writes."""

from .errors import InvalidBinding
from .node_arg import one_of
from .ort_value import OrtValue, array_over, check_host, checked_array, new_array

__all__ = ["IOBinding"]


def _array_of(ortvalue, location):
    if not isinstance(ortvalue, OrtValue):
        raise InvalidBinding(location, f"expected an OrtValue, found {type(ortvalue).__name__}")
    return ortvalue.numpy()


class IOBinding:
    """Inputs and outputs of a session's runs. Made by InferenceSession.io_binding().

        binding = session.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        y, = binding.copy_outputs_to_cpu()
    """

    def __init__(self, session):
        self.session = session
        self._input_names = [arg.name for arg in
                             (*session.get_inputs(), *session.get_overridable_initializers())]
        self._output_names = [arg.name for arg in session.get_outputs()]
        self.inputs = {}
        # Arrays by name; None means that a run makes the array.
        self.outputs = {}
        # Results of the newest run, by name.
        self.results = {}
        # The number of changes, by which a session knows whether it must bind again.
        self.version = 0

    def _check(self, name, known, kind):
        if name not in known:
            raise InvalidBinding(f"{kind} '{name}'", f"expected {one_of(name, known)}")
        return f"{kind} '{name}'"

    def bind_cpu_input(self, name, arr_on_cpu):
        """Binds an input to an array; runs read what it contains then. If it is not dense, a copy is
        bound."""
        location = self._check(name, self._input_names, "input")
        self._set_input(name, checked_array(arr_on_cpu, location))

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr):
        """Binds an input to memory at an address, which the caller keeps alive."""
        location = self._check(name, self._input_names, "input")
        check_host(device_type)
        self._set_input(name, array_over(buffer_ptr, shape, element_type, location))

    def bind_ortvalue_input(self, name, ortvalue):
        """Binds an input to an OrtValue."""
        location = self._check(name, self._input_names, "input")
        self._set_input(name, _array_of(ortvalue, location))

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None,
                    buffer_ptr=None):
        """Binds an output to memory at an address, which the caller keeps alive; or, without an
        address, to memory that each run makes."""
        location = self._check(name, self._output_names, "output")
        check_host(device_type)
        array = None
        if buffer_ptr:
            array = array_over(buffer_ptr, shape, element_type, location)
        elif shape is not None and element_type is not None:
            array = new_array(shape, element_type, location)
        self._set_output(name, array)

    def bind_ortvalue_output(self, name, ortvalue):
        """Binds an output to an OrtValue, to which runs write."""
        location = self._check(name, self._output_names, "output")
        self._set_output(name, _array_of(ortvalue, location))

    def _set_input(self, name, array):
        self.inputs[name] = array
        self.version += 1

    def _set_output(self, name, array):
        self.outputs[name] = array
        self.version += 1

    def get_outputs(self):
        """The outputs of the newest run, in the order in which they were bound."""
        return [OrtValue(self.results[name]) for name in self.outputs if name in self.results]

    def get_outputs_as_ortvaluevector(self):
        """Same as get_outputs()."""
        return self.get_outputs()

    def copy_outputs_to_cpu(self):
        """The outputs of the newest run as new arrays."""
        return [self.results[name].copy() for name in self.outputs if name in self.results]

    def synchronize_inputs(self):
        """Does nothing: the host's memory needs no synchronisation."""

    def synchronize_outputs(self):
        """Does nothing: a run has finished when it returns."""

    def clear_binding_inputs(self):
        self.inputs.clear()
        self.version += 1

    def clear_binding_outputs(self):
        self.outputs.clear()
        self.results = {}
        self.version += 1
