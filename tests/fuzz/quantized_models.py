"""Random networks of quantised tensors, as tools that quantise write them: each node between
DequantizeLinear and QuantizeLinear, or an op on quantised tensors. A number identifies a network.
Run as a program, it tries many: quantized_models.py --first 0 --count 1000 [--backends native]
[--each-target]"""

import argparse
import ctypes
import dataclasses
import pathlib
import random
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 21
MICROSOFT = "com.microsoft"
UNARY = ("Relu", "Sigmoid", "HardSwish", "LeakyRelu", "Tanh", "Clip", "Elu")
TYPES = {np.dtype(np.int8): TensorProto.INT8, np.dtype(np.uint8): TensorProto.UINT8}


@dataclasses.dataclass
class Value:
    """A tensor of bytes, and the names of its scale and zero point."""
    name: str
    shape: tuple
    scale: str
    zero: str
    spread: float  # how large its real numbers are


class Network:
    """Grows node by node. `values` are its tensors of bytes in the order in which they are made."""

    def __init__(self, number):
        self.random = random.Random(number)
        self.arrays = np.random.default_rng(number)
        self.dtype = np.dtype(self.random.choice((np.int8, np.uint8)))
        self.nodes, self.weights, self.values, self.count = [], {}, [], 0
        self.inputs = {}
        rank = self.random.choice((2, 3, 4, 4, 4))
        for _ in range(self.random.choice((1, 1, 2))):
            self.add_input(self.shape(rank))
        steps = [getattr(self, name) for name in dir(self) if name.startswith("step_")]
        wanted = self.random.randint(2, 12)
        for _ in range(60):
            if len(self.values) - len(self.inputs) >= wanted:
                break
            self.random.choice(steps)(self.pick())

    # --- Parts

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def shape(self, rank):
        sizes = [self.random.choice((1, 1, 2))] + [self.random.randint(1, 9) for _ in range(rank - 1)]
        if rank == 4:
            sizes[1] = self.random.choice((1, 3, 4, 8, 13, 16, 20))
            sizes[2:] = [self.random.randint(3, 12) for _ in range(2)]
        return tuple(sizes)

    def pick(self):
        return self.random.choice(self.values[-3:])

    def constant(self, prefix, array):
        name = self.name(prefix)
        self.weights[name] = np.asarray(array)
        return name

    def bytes(self, shape, dtype):
        limits = np.iinfo(dtype)
        return self.arrays.integers(limits.min, limits.max + 1, shape).astype(dtype)

    def parameters(self, spread, dtype=None):
        """A scale so that a few steps of it are `spread`, and a zero point."""
        dtype = dtype or self.dtype
        scale = np.float32(2.0 ** round(np.log2(spread / 40)) if self.random.random() < 0.3
                           else spread / self.random.uniform(20, 60))
        middle = 0 if dtype == np.int8 else 128
        zero = self.random.choice((middle, middle, middle + self.random.randint(-40, 40)))
        return self.constant("s", scale), self.constant("z", np.asarray(zero, dtype))

    def add_input(self, shape):
        name = self.name("x")
        self.inputs[name] = shape
        scale, zero = self.parameters(1.0)
        self.values.append(Value(name, shape, scale, zero, 2.0))

    def node(self, op, inputs, domain="", **attributes):
        output = self.name("v")
        self.nodes.append(helper.make_node(op, inputs, [output], name=f"n{len(self.nodes)}",
                                           domain=domain, **attributes))
        return output

    def real(self, value):
        return self.node("DequantizeLinear", [value.name, value.scale, value.zero])

    def keep(self, output, shape, spread, like=None):
        """The real numbers `output` as bytes, with a new scale or that of another value."""
        scale, zero = (like.scale, like.zero) if like else self.parameters(spread)
        made = self.node("QuantizeLinear", [output, scale, zero])
        self.values.append(Value(made, tuple(shape), scale, zero, spread))

    def perhaps_limited(self, output):
        drawn = self.random.random()
        if drawn < 0.3:
            return self.node("Relu", [output])
        if drawn < 0.4:
            return self.node("Clip", [output, self.constant("c", np.float32(0)),
                                      self.constant("c", np.float32(6))])
        return output

    def quantised_weights(self, shape, axis, dtype=np.int8):
        """Weights as bytes behind a DequantizeLinear, of one scale or of one for each channel."""
        channels = shape[axis]
        is_per_channel = self.random.random() < 0.5
        scales = self.arrays.uniform(0.004, 0.02, channels if is_per_channel else ())
        if is_per_channel or dtype == np.int8:
            zeros = np.zeros(scales.shape, dtype)
        else:
            zeros = np.asarray(self.random.randint(100, 150), dtype)
        name = self.constant("w", self.bytes(shape, dtype))
        return self.node("DequantizeLinear", [
            name, self.constant("s", scales.astype(np.float32)), self.constant("z", zeros)],
                         axis=axis)

    # --- Steps: each may do nothing if the value does not fit

    def step_conv(self, value):
        if len(value.shape) != 4:
            return
        channels = value.shape[1]
        divisors = [g for g in (1, 2, 4, channels) if channels % g == 0]
        group = self.random.choice(divisors)
        outputs = group * self.random.randint(1, 6)
        kernel = [self.random.choice((1, 3)) for _ in range(2)]
        if any(size < k for size, k in zip(value.shape[2:], kernel)):
            return
        stride = self.random.choice((1, 1, 2))
        pads = [k // 2 if self.random.random() < 0.6 else 0 for k in kernel] * 2
        weights = self.quantised_weights((outputs, channels // group, *kernel), 0)
        inputs = [self.real(value), weights]
        if self.random.random() < 0.5:
            inputs.append(self.constant("b", self.arrays.normal(0, 0.5, outputs).astype(np.float32)))
        output = self.node("Conv", inputs, group=group, strides=[stride] * 2, pads=pads,
                           kernel_shape=kernel)
        spatial = [(size + pads[i] + pads[i + 2] - kernel[i]) // stride + 1
                   for i, size in enumerate(value.shape[2:])]
        terms = channels // group * kernel[0] * kernel[1]
        self.keep(self.perhaps_limited(output), (value.shape[0], outputs, *spatial),
                  0.8 * value.spread * terms ** 0.5)

    def step_matmul(self, value):
        if len(value.shape) < 2:
            return
        outputs = self.random.randint(1, 20)
        weights = self.quantised_weights((value.shape[-1], outputs), 1)
        output = self.node("MatMul", [self.real(value), weights])
        if self.random.random() < 0.3:
            bias = self.constant("b", self.arrays.normal(0, 0.5, outputs).astype(np.float32))
            output = self.node("Add", [output, bias])
        self.keep(self.perhaps_limited(output), (*value.shape[:-1], outputs),
                  0.8 * value.spread * value.shape[-1] ** 0.5)

    def other_for(self, value):
        """Another value, or a new input, that broadcasts to this one."""
        fitting = [v for v in self.values if v is not value and v.shape == value.shape]
        if fitting and self.random.random() < 0.7:
            return self.random.choice(fitting)
        shape = tuple(size if self.random.random() < 0.7 else 1 for size in value.shape)
        self.add_input(shape)
        return self.values.pop()

    def step_pair(self, value):
        other = self.other_for(value)
        op = self.random.choice(("Add", "Mul"))
        spread = value.spread + other.spread if op == "Add" else value.spread * other.spread
        if self.random.random() < 0.3:
            scale, zero = self.parameters(spread)
            made = self.node(f"QLinear{op}", [value.name, value.scale, value.zero, other.name,
                                              other.scale, other.zero, scale, zero], MICROSOFT)
            self.values.append(Value(made, value.shape, scale, zero, spread))
            return
        pair = [self.real(value), self.real(other)]
        self.random.shuffle(pair)
        self.keep(self.perhaps_limited(self.node(op, pair)), value.shape, spread)

    def step_unary(self, value):
        op = self.random.choice(UNARY)
        if op in ("Sigmoid", "LeakyRelu") and self.random.random() < 0.4:
            scale, zero = self.parameters(1.0 if op == "Sigmoid" else value.spread)
            made = self.node(f"QLinear{op}", [value.name, value.scale, value.zero, scale, zero],
                             MICROSOFT)
            self.values.append(Value(made, value.shape, scale, zero, value.spread))
            return
        real = self.real(value)
        if op == "Clip":
            output = self.node(op, [real, self.constant("c", np.float32(-1)),
                                    self.constant("c", np.float32(2))])
        else:
            output = self.node(op, [real])
        self.keep(output, value.shape, value.spread if op != "Sigmoid" else 1.0)

    def step_pool(self, value):
        if len(value.shape) != 4:
            return
        op = self.random.choice(("MaxPool", "AveragePool", "GlobalAveragePool"))
        if op == "GlobalAveragePool":
            output = self.node(op, [self.real(value)])
            return self.keep(output, (*value.shape[:2], 1, 1), value.spread / 2)
        kernel = [min(size, self.random.randint(1, 3)) for size in value.shape[2:]]
        stride = self.random.choice((1, 2))
        pads = [self.random.randint(0, k - 1) for k in kernel] * 2
        attributes = {} if op == "MaxPool" else {"count_include_pad": self.random.randint(0, 1)}
        spatial = [(size + 2 * pads[i] - kernel[i]) // stride + 1
                   for i, size in enumerate(value.shape[2:])]
        output = self.node(op, [self.real(value)], kernel_shape=kernel, strides=[stride] * 2,
                           pads=pads, **attributes)
        is_same = op == "MaxPool" and self.random.random() < 0.7
        self.keep(output, (*value.shape[:2], *spatial), value.spread, value if is_same else None)

    def step_concat(self, value):
        axis = self.random.randrange(len(value.shape))
        fitting = [v for v in self.values if len(v.shape) == len(value.shape) and all(
            i == axis or v.shape[i] == value.shape[i] for i in range(len(value.shape)))]
        parts = [value, *self.random.sample(fitting, min(len(fitting), self.random.randint(0, 2)))]
        shape = list(value.shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        if self.random.random() < 0.3:
            scale, zero = self.parameters(value.spread)
            inputs = [scale, zero]
            for part in parts:
                inputs += [part.name, part.scale, part.zero]
            made = self.node("QLinearConcat", inputs, MICROSOFT, axis=axis)
            self.values.append(Value(made, tuple(shape), scale, zero, value.spread))
            return
        output = self.node("Concat", [self.real(part) for part in parts], axis=axis)
        self.keep(output, shape, value.spread)

    def step_move(self, value):
        rank = len(value.shape)
        op = self.random.choice(("Transpose", "Reshape", "Slice"))
        if op == "Transpose":
            order = self.random.sample(range(rank), rank)
            shape = [value.shape[axis] for axis in order]
            output = self.node(op, [self.real(value)], perm=order)
        elif op == "Reshape":
            shape = [value.shape[0], int(np.prod(value.shape[1:]))]
            output = self.node(op, [self.real(value), self.constant("n", np.array(shape))])
        else:
            axis = self.random.randrange(rank)
            end = self.random.randint(1, value.shape[axis])
            shape = list(value.shape)
            shape[axis] = end
            lists = [self.constant("n", np.array([number])) for number in (0, end, axis)]
            output = self.node(op, [self.real(value), *lists])
        self.keep(output, shape, value.spread, value if self.random.random() < 0.7 else None)

    def step_softmax(self, value):
        self.keep(self.node("Softmax", [self.real(value)], axis=-1), value.shape, 0.5)

    def step_resize(self, value):
        if len(value.shape) != 4 or max(value.shape[2:]) > 12:
            return
        scales = self.constant("f", np.array([1, 1, 2, 2], np.float32))
        output = self.node("Resize", [self.real(value), "", scales], mode="nearest",
                           coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        shape = (*value.shape[:2], 2 * value.shape[2], 2 * value.shape[3])
        self.keep(output, shape, value.spread, value if self.random.random() < 0.7 else None)

    def step_linear_conv(self, value):
        if len(value.shape) != 4:
            return
        outputs = self.random.randint(1, 9)
        shape = (outputs, value.shape[1], 1, 1)
        # Without VNNI, ONNX Runtime adds pairs of products in 16 bits, which larger weights exceed.
        weights = self.arrays.integers(-63, 64, shape).astype(np.int8)
        is_per_channel = self.random.random() < 0.5
        scales = self.arrays.uniform(0.004, 0.02, outputs if is_per_channel else ())
        spread = 0.8 * value.spread * value.shape[1] ** 0.5
        scale, zero = self.parameters(spread)
        made = self.node("QLinearConv", [
            value.name, value.scale, value.zero, self.constant("w", weights),
            self.constant("s", scales.astype(np.float32)),
            self.constant("z", np.zeros(scales.shape, np.int8)), scale, zero])
        self.values.append(Value(made, (value.shape[0], outputs, *value.shape[2:]), scale, zero,
                                 spread))

    # --- Results

    def outputs(self):
        """The last tensor of bytes, and others that nothing reads."""
        read = {name for node in self.nodes for name in node.input}
        return [v for v in self.values if v.name not in self.inputs and v.name not in read]

    def model(self, outputs):
        inputs = [helper.make_tensor_value_info(name, TYPES[self.dtype], shape)
                  for name, shape in self.inputs.items()]
        graph = helper.make_graph(
            self.nodes, "g", inputs,
            [helper.make_tensor_value_info(v.name, TYPES[self.dtype], v.shape) for v in outputs],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()])
        return helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)])

    def feeds(self):
        arrays = np.random.default_rng(len(self.nodes))
        limits = np.iinfo(self.dtype)
        return {name: arrays.integers(limits.min, limits.max + 1, shape).astype(self.dtype)
                for name, shape in self.inputs.items()}


def distance(one, other):
    if one.shape != other.shape:
        return 1 << 30
    if one.size == 0:
        return 0
    return int(np.abs(one.astype(np.int64) - other.astype(np.int64)).max())


def ancestors(network, name):
    """The tensors of bytes from which a node of the network makes this one, without those before."""
    makers = {node.output[0]: node for node in network.nodes}
    made = {value.name for value in network.values}
    found, pending = set(), [name]
    while pending:
        maker = makers.get(pending.pop())
        for each in maker.input if maker else ():
            if each in made:
                found.add(each)
            else:
                pending.append(each)
    return found


def explain(network, expected, found):
    """A sentence for the first tensor that is off by more than one quantum although all that it
    is made of are equal; "" if there is none."""
    for name, array in expected.items():
        if distance(array, found[name]) <= 1:
            continue
        if all(np.array_equal(expected[each], found[each])
               for each in ancestors(network, name) if each in expected):
            maker = next(node for node in network.nodes if node.output[0] == name)
            return f"{name} ({maker.op_type}): off by {distance(array, found[name])}"
    return ""


class Targets:
    """The instruction sets of the backend native, as Highway numbers them. DOT_PRODUCTS beside
    another one allows dot products of bytes."""

    DOT_PRODUCTS = 1 << 7
    WITH_DOT_PRODUCTS = (1 << 8, 1 << 9)  # AVX-512, AVX2

    def __init__(self, build):
        library = ctypes.CDLL(str(pathlib.Path(build) / "lib/tessera/backend_native.so"))
        self.choose = library.tessera_native_choose_targets
        self.choose.argtypes, self.choose.restype = [ctypes.c_int64], ctypes.c_int64

    def all(self):
        """Each of this processor."""
        found = self.choose(0)
        bits = [1 << bit for bit in range(63) if found >> bit & 1]
        single = [bit for bit in bits if bit != self.DOT_PRODUCTS]
        return single + [bit | self.DOT_PRODUCTS for bit in single if bit in self.WITH_DOT_PRODUCTS]


class Trial:
    """Runs a network on the reference, on lists of backends, and with ONNX Runtime."""

    def __init__(self, tessera, lists, has_judge=True):
        self.tessera = tessera
        self.lists = lists
        self.judge = None
        if has_judge:
            import onnxruntime

            onnxruntime.set_default_logger_severity(4)
            self.judge = onnxruntime
        self.unjudged = 0

    def run(self, network, outputs, backends):
        model = network.model(outputs).SerializeToString()
        bound = self.tessera.load(model).bind(network.inputs, backends=backends, optimize=False,
                                              threads=self.threads(network))
        return dict(zip((v.name for v in outputs), bound.run(network.feeds())))

    @staticmethod
    def threads(network):
        return 1 + len(network.nodes) % 2

    def judged(self, network, outputs):
        options = self.judge.SessionOptions()
        options.graph_optimization_level = self.judge.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        try:
            session = self.judge.InferenceSession(
                network.model(outputs).SerializeToString(), options,
                providers=["CPUExecutionProvider"])
            names = [v.name for v in outputs]
            return dict(zip(names, session.run(names, network.feeds())))
        except Exception:
            self.unjudged += 1
            return None

    def findings(self, network):
        """Sentences about what is wrong."""
        outputs = network.outputs()
        inner = [v for v in network.values if v.name not in network.inputs]
        expected = self.run(network, outputs, ["reference"])
        wrong = []
        for backends in self.lists:
            found = self.run(network, outputs, backends)
            if all(distance(expected[name], found[name]) <= 1 for name in expected):
                continue
            # One quantum may have become more on the way: each step alone must be right.
            text = explain(network, self.run(network, inner, ["reference"]),
                           self.run(network, inner, backends))
            together = explain(network, expected, found) if len(inner) == len(outputs) else ""
            if text or together:
                wrong.append(f"{','.join(backends)}: {text or together}")
            elif any(distance(expected[name], found[name]) > 16 for name in expected):
                wrong.append(f"{','.join(backends)}: an output is off by more than 16")
        judged = self.judged(network, inner) if self.judge else None
        if judged:
            text = explain(network, judged, self.run(network, inner, ["reference"]))
            if text:
                wrong.append(f"reference beside ONNX Runtime: {text}")
        return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--backends", action="append", default=[], metavar="NAMES")
    parser.add_argument("--python", default="build/release/python", metavar="DIR")
    parser.add_argument("--each-target", action="store_true",
                        help="each network with each instruction set of native")
    parser.add_argument("--save", default="", metavar="FILE", help="write the first network there")
    arguments = parser.parse_args()
    sys.path.insert(0, arguments.python)
    import tessera

    if arguments.save:
        network = Network(arguments.first)
        onnx.save(network.model(network.outputs()), arguments.save)
    lists = [names.split(",") for names in arguments.backends or ("native,reference",)]
    targets = Targets(pathlib.Path(arguments.python).parent) if arguments.each_target else None
    # ONNX Runtime judges the reference, which is the same with all instruction sets.
    trial, failures = Trial(tessera, lists, not targets), 0
    for number in range(arguments.first, arguments.first + arguments.count):
        network = Network(number)
        for target in targets.all() if targets else (0,):
            if targets:
                targets.choose(target)
            for text in trial.findings(network):
                failures += 1
                print(f"{number}: {f'target {target:#x}: ' if target else ''}{text}", flush=True)
    print(f"{arguments.count} networks, {failures} findings, {trial.unjudged} without a judge")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
