"""Random nodes of quantised operators, and how their results are compared."""

import numpy as np
import onnxruntime
from onnx import AttributeProto, TensorProto, helper
from small_models import model_of, tensor_type

BYTES = (np.uint8, np.int8)
# ONNX Runtime has no kernels on the CPU.
ALONE = {"QLinearReduceMean", "MulInteger", "ReduceSumInteger"}


class Case:
    """One node. `inputs` may contain None; `expected` has the outputs of the definition."""

    def __init__(self, op, inputs, expected, is_known_to_ort=True, constants=(),
                 domain="com.microsoft", version=17, **attributes):
        self.op, self.inputs, self.attributes = op, inputs, attributes
        self.domain, self.version = domain, version
        self.expected = expected if isinstance(expected, tuple) else (expected,)
        # ONNX Runtime's rules want the zero points that their schemas let nodes leave out.
        is_complete = not op.startswith("QLinear") or all(each is not None for each in inputs)
        self.is_known_to_ort = is_known_to_ort and is_complete and op not in ALONE
        self.constants = constants

    def model(self):
        names = ["" if each is None else f"i{index}" for index, each in enumerate(self.inputs)]
        while names and not names[-1]:
            names.pop()
        outputs = [f"o{index}" for index in range(len(self.expected))]
        node = helper.make_node(self.op, names, outputs, "node", domain=self.domain)
        for key, value in self.attributes.items():
            kind = AttributeProto.INTS if isinstance(value, list) else None
            node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
        kinds = {name: tensor_type(helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                 for name, value in self.feeds().items()}
        results = {name: tensor_type(self.output_type(value), value.shape)
                   for name, value in zip(outputs, self.expected)}
        constants = {f"i{index}": self.inputs[index] for index in self.constants}
        return model_of([node], kinds, results, constants, opset=self.version, ir_version=10,
                        domains={"com.microsoft": 1}).SerializeToString()

    def output_type(self, expected):
        if np.issubdtype(expected.dtype, np.integer):
            return helper.np_dtype_to_tensor_dtype(expected.dtype)
        floats = [each.dtype for each in self.inputs if each is not None
                  and each.dtype in (np.float16, np.float32)]
        return helper.np_dtype_to_tensor_dtype(floats[0]) if floats else TensorProto.FLOAT

    def feeds(self):
        return {f"i{index}": np.asarray(each) for index, each in enumerate(self.inputs)
                if each is not None and index not in self.constants}


class Draw:
    """Random numbers for cases."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def one_of(self, *choices):
        return choices[self.random.integers(len(choices))]

    def size(self, low=1, high=5):
        return int(self.random.integers(low, high + 1))

    def shape(self, low=1, high=4):
        return tuple(self.size() for _ in range(self.size(low, high)))

    def integers(self, dtype, shape=()):
        bounds = np.iinfo(dtype)
        return self.random.integers(bounds.min, bounds.max + 1, shape).astype(dtype)

    def scale(self, low=0.001, high=0.1, shape=()):
        exponents = self.random.uniform(np.log(low), np.log(high), shape)
        # Powers of two give numbers that lie between two integers.
        return np.asarray(np.exp(np.round(exponents / np.log(2)) * np.log(2))
                          if self.random.random() < 0.3 else np.exp(exponents), np.float32)

    def zero(self, dtype, may_lack=True):
        return None if may_lack and self.random.random() < 0.2 else self.integers(dtype)

    def normal(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def broadcast_pair(self):
        shape = self.shape(0)
        parts = []
        for _ in range(2):
            part = [1 if self.random.random() < 0.3 else each for each in shape]
            parts.append(tuple(part[self.random.integers(len(part) + 1):]
                               if self.random.random() < 0.4 else part))
        return parts


def compare(found, expected, quantum, case):
    for mine, right in zip(found, expected):
        assert mine.shape == right.shape
        if np.issubdtype(mine.dtype, np.integer):
            distance = np.abs(mine.astype(np.int64) - right.astype(np.int64)).max(initial=0)
            assert distance <= quantum, (case.op, case.attributes, distance)
        else:
            step = {np.dtype(np.float16): 1e-3}.get(mine.dtype, 1e-6 if quantum == 0 else 2e-5)
            largest = np.abs(np.asarray(right, np.float64)).max(initial=1)
            np.testing.assert_allclose(mine, right, rtol=step, atol=step * largest)


def run_ort(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)
