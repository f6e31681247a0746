"""Tessera as a backend of the package onnx, which onnx.backend.test runs conformance cases on.

    import tessera.backend

    outputs = tessera.backend.run_model(onnx.load("model.onnx"), [x])
"""

from onnx import ModelProto, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

import tessera

__all__ = ["TesseraBackend", "TesseraRep", "is_compatible", "prepare", "run_model", "run_node",
           "supports_device"]


class TesseraRep(BackendRep):
    """A model that run() runs on arrays, in the order of its inputs."""

    def __init__(self, model, options):
        self._model = model
        self._options = options
        self._executor = None

    def run(self, inputs, **kwargs):
        """The outputs, by name and in order. `inputs`: arrays in the order of the model's inputs, or
        by name; `kwargs` are ignored."""
        described = self._model.inputs
        if hasattr(inputs, "keys"):
            feed = {name: inputs[name] for name in inputs.keys()}
        else:
            if len(inputs) != len(described):
                raise tessera.InvalidArgument("inputs", f"expected {len(described)} arrays, found "
                                                        f"{len(inputs)}")
            feed = {value.name: array
                    for value, array in zip(described, inputs, strict=True)}
        if self._executor is None:
            shapes = {value.name: feed[value.name].shape for value in described
                      if value.name in feed and hasattr(feed[value.name], "shape")}
            self._executor = self._model.bind(shapes, **self._options)
        results = self._executor.run(feed)
        names = [value.name for value in self._model.outputs]
        return namedtupledict("Outputs", names)(*results)


class TesseraBackend(Backend):
    """Runs models on the processor."""

    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        """Whether this build knows every op and type of the model."""
        if not cls.supports_device(device):
            return False
        try:
            tessera.load(model.SerializeToString(), log=lambda message: None)
        except tessera.Unsupported:
            return False
        except tessera.Error:
            # prepare() says what is wrong with it.
            return True
        return True

    @classmethod
    def supports_device(cls, device):
        """Whether models can run on a device, such as "CPU" or "CPU:0"."""
        return device.partition(":")[0].upper() == "CPU"

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        """A TesseraRep of an onnx.ModelProto. `kwargs` are options of tessera.Model.bind(); without
        `optimize`, nothing is measured."""
        if not cls.supports_device(device):
            raise tessera.Unsupported("device", f"expected 'CPU', found '{device}'")
        if not isinstance(model, ModelProto):
            raise TypeError(f"model: expected an onnx.ModelProto, found {type(model).__name__}")
        return TesseraRep(tessera.load(model.SerializeToString()), {"optimize": "off", **kwargs})

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        """The outputs of a model."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        """The outputs of a node; `opset_version` among `kwargs` is the version of ONNX's ops."""
        opset = kwargs.pop("opset_version", None)
        names = [name for name in node.input if name]
        values = [helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, inputs, strict=True)]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], "node", values, outputs)
        imports = [helper.make_opsetid(node.domain, opset)] if opset else None
        model = helper.make_model(graph, opset_imports=imports)
        return cls.run_model(model, inputs, device, **kwargs)


is_compatible = TesseraBackend.is_compatible
prepare = TesseraBackend.prepare
run_model = TesseraBackend.run_model
run_node = TesseraBackend.run_node
supports_device = TesseraBackend.supports_device
