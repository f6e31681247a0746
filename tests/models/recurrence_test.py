"""LSTM, GRU and RNN with random attributes, inputs and outputs compute the same as ONNX Runtime."""

import numpy as np
import onnx
import pytest

from small_models import model_of, node
from value_comparison import differences, run_onnxruntime, run_tessera

NODES = 12  # a model
OPSET = 14
FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
# Every activation function, with its number of alpha and beta parameters.
ACTIVATIONS = {
    "Sigmoid": (0, 0), "Tanh": (0, 0), "Relu": (0, 0), "Softsign": (0, 0), "Softplus": (0, 0),
    "Affine": (1, 1), "ScaledTanh": (1, 1), "HardSigmoid": (1, 1),
    "LeakyRelu": (1, 0), "ThresholdedRelu": (1, 0), "Elu": (1, 0),
}  # fmt: skip
# For gates: with unbounded functions, states grow quadratically at each step.
BOUNDED = ("Sigmoid", "Tanh", "Softsign", "ScaledTanh", "HardSigmoid")
# By ONNX, omitted parameters have the defaults of the operators of these names; ONNX Runtime uses
# 0.
WITHOUT_DEFAULTS = ("Affine", "ScaledTanh", "ThresholdedRelu")


class Pair:
    """One graph in two forms: for Tessera, and for ONNX Runtime, which does not support layout 1.
    """

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.nodes = []
        self.peer_nodes = []
        self.inputs = {}
        self.weights = {}
        self.outputs = []

    def whole(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def constant(self, name: str, array) -> str:
        self.weights[name] = array
        return name

    def normal(self, name: str, *shape) -> str:
        return self.constant(name, self.random.normal(0, 0.5, shape).astype(np.float32))

    def functions(self, count: int, directions: int) -> dict:
        names = []
        for _ in range(directions):
            first = list(BOUNDED if count > 1 else ACTIVATIONS)
            names.append(str(self.random.choice(first)))
            names += [str(name) for name in self.random.choice(list(ACTIVATIONS), count - 1)]
        drawn = {"activations": names}
        for key, place in (("activation_alpha", 0), ("activation_beta", 1)):
            takers = [name for name in names if ACTIVATIONS[name][place]]
            needed = [at + 1 for at, name in enumerate(takers) if name in WITHOUT_DEFAULTS]
            # May be fewer than the parameters: then the last ones have their defaults.
            given = self.whole(max(needed, default=0), len(takers))
            if given:
                drawn[key] = self.random.uniform(0.1, 0.9, given).astype(np.float32).tolist()
        return drawn

    def transposed(self, name: str, order: list[int], back: bool = False) -> str:
        other = f"{name}_steps_first"
        ends = [other, name] if back else [name, other]
        self.peer_nodes.append(node("Transpose", ends[:1], ends[1:], perm=order))
        return other

    def add_node(self, index: int) -> None:
        op = ("LSTM", "GRU", "RNN")[index % 3]
        steps, batch = self.whole(1, 5), self.whole(1, 4)
        features, hidden = self.whole(1, 6), self.whole(1, 9)
        direction = str(self.random.choice(["forward", "reverse", "bidirectional"]))
        directions = 2 if direction == "bidirectional" else 1
        is_batched = self.whole(0, 2) == 0
        attributes = {"direction": direction, "hidden_size": hidden}
        if self.whole(0, 1):
            attributes |= self.functions(FUNCTIONS[op], directions)
        if self.whole(0, 2) == 0:
            attributes["clip"] = float(self.random.uniform(0.2, 2))
        if op == "GRU":
            attributes["linear_before_reset"] = self.whole(0, 1)
        if op == "LSTM":
            attributes["input_forget"] = self.whole(0, 1)

        def order(*axes) -> list[int]:
            return [axes[1], axes[0], *axes[2:]] if is_batched else list(axes)

        x = f"x{index}"
        shape = order(steps, batch, features)
        self.inputs[x] = shape
        width = GATES[op] * hidden
        state = order(directions, batch, hidden)
        names = [x, self.normal(f"w{index}", directions, width, features),
                 self.normal(f"r{index}", directions, width, hidden)]  # fmt: skip
        optional = [
            lambda name: self.normal(name, directions, 2 * width),
            lambda name: self.constant(
                name, self.random.integers(1, steps + 1, batch).astype(np.int32)
            ),
            lambda name: self.normal(name, *state),
        ]
        if op == "LSTM":
            optional.append(lambda name: self.normal(name, *state))
            optional.append(lambda name: self.normal(name, directions, 3 * hidden))
        for place, make in enumerate(optional):
            names.append(make(f"optional{place}_{index}") if self.whole(0, 1) else "")

        results = [f"y{index}", f"h{index}", f"c{index}"][: 3 if op == "LSTM" else 2]
        dropped = self.whole(0, len(results))
        results = ["" if place == dropped else name for place, name in enumerate(results)]
        self.outputs += [name for name in results if name]
        layout = {"layout": 1} if is_batched else {}
        self.nodes.append(node(op, names, results, **attributes, **layout))
        if is_batched:
            for place in (0, 5, 6):
                if place < len(names) and names[place]:
                    names[place] = self.transposed(names[place], [1, 0, 2])
        ends = []  # Transposes after the node
        peer_results = list(results)
        if is_batched:
            for place, name in enumerate(results):
                if name:
                    ends.append((name, [2, 0, 1, 3] if place == 0 else [1, 0, 2]))
                    peer_results[place] = f"{name}_steps_first"
        self.peer_nodes.append(node(op, names, peer_results, **attributes))
        for name, axes in ends:
            self.transposed(name, axes, back=True)

    def model(self, nodes) -> onnx.ModelProto:
        return model_of(nodes, self.inputs, self.outputs, self.weights, opset=OPSET)


@pytest.mark.parametrize("backends", ["reference", "native", "onednn,native"])
@pytest.mark.parametrize("seed", range(1, 26))
def test_equals_onnxruntime(tessera_binary, choose_backends, tmp_path, seed, backends):
    choice = choose_backends(backends)
    pair = Pair(seed)
    for index in range(NODES):
        pair.add_node(index)
    model = tmp_path / "recurrences.onnx"
    peer = tmp_path / "peer.onnx"
    onnx.save(pair.model(pair.nodes), model)
    onnx.save(pair.model(pair.peer_nodes), peer)
    inputs, actual = run_tessera(tessera_binary, model, seed, tmp_path, *choice)
    expected = run_onnxruntime(peer, inputs, tmp_path)
    assert not differences({name: expected[name] for name in pair.outputs}, actual)
