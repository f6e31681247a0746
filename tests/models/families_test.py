"""Plans for families of shapes: on networks with open sizes, their results are those of ONNX
Runtime and, with one choice of kernels, those of plans for exact shapes to the bit."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import open_models
from value_comparison import explain_difference

# Plans for exact shapes may compute these once, by the reference, because their inputs follow from
# sizes. Other functions of sizes, as sums and products, have the same bits in all backends.
FOLDED_OPS = ("Sin", "Cos")


def folded_ops(model):
    """Resize as well, if it resizes a constant to sizes that the model computes."""
    constants = {one.name for one in model.graph.initializer}
    constants |= {node.output[0] for node in model.graph.node if node.op_type == "Constant"}
    resizes_constant = any(node.op_type == "Resize" and node.input[0] in constants
                           for node in model.graph.node)
    return (*FOLDED_OPS, *["Resize"] * resizes_constant)


@pytest.fixture(params=open_models.MODELS, ids=lambda make: make.__name__)
def network(request):
    return request.param()


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


def shapes_of(arrays):
    return {name: array.shape for name, array in arrays.items()}


@pytest.mark.parametrize("threads", [1, 2])
def test_random_shapes_give_what_onnxruntime_gives(tessera, network, threads, is_long):
    model, sizes = network
    session = session_of(model)
    random = np.random.default_rng(threads)
    first = open_models.draw_inputs(model, sizes, random)
    executor = tessera.load(model.SerializeToString()).bind(shapes_of(first), threads=threads,
                                                            optimize=False)
    kept = []
    for count in range(500 if is_long else 40):
        arrays = open_models.draw_inputs(model, sizes, random)
        found = executor.run(arrays)
        kept.append((found, [one.copy() for one in found]))
        expected = session.run(None, arrays)
        for one, other in zip(expected, found, strict=True):
            assert not explain_difference(one, other), (count, shapes_of(arrays))
    # Later runs of other sizes write to other memory.
    for found, copies in kept:
        for one, other in zip(found, copies, strict=True):
            np.testing.assert_array_equal(one, other)


def test_few_plans_serve_many_shapes(tessera, network):
    model, sizes = network
    random = np.random.default_rng(4)
    loaded = tessera.load(model.SerializeToString())
    drawn = [open_models.draw_inputs(model, sizes, random) for _ in range(40)]
    executor = loaded.bind(shapes_of(drawn[0]), threads=1, optimize=False, most_shapes=len(drawn))
    for arrays in drawn:
        executor.run(arrays)
    # Sizes of 0 and 1, and sizes that are equal by chance, make families of their own.
    different = {str(shapes_of(arrays)) for arrays in drawn}
    assert len(executor.shapes().plans) < 0.7 * len(different)


@pytest.mark.parametrize("backend", ["reference", "native"])
def test_one_choice_gives_the_bits_of_exact_plans(tessera, network, need_backend, backend):
    need_backend(backend)
    model, sizes = network
    random = np.random.default_rng(3)
    loaded = tessera.load(model.SerializeToString())
    first = open_models.draw_inputs(model, sizes, random)
    chosen = {"threads": 1, "optimize": False, "backends": [backend]}
    executor = loaded.bind(shapes_of(first), **chosen)
    exact = loaded.bind(shapes_of(first), families=False, **chosen)
    for _ in range(6):
        arrays = open_models.draw_inputs(model, sizes, random)
        for one, other in zip(exact.run(arrays), executor.run(arrays), strict=True):
            assert one.shape == other.shape
            if backend == "reference":
                np.testing.assert_array_equal(one, other)
            else:
                # A kernel that was chosen for a size may sum in another order.
                assert not explain_difference(one, other), shapes_of(arrays)


def nodes_of(plan):
    return {node for step in plan.steps for node in step.nodes}


def choice_of(plan, nodes):
    """How `plan` computes `nodes`: in which groups, by which kernels, and in which layouts."""
    choice = set()
    for step in plan.steps:
        among = tuple(node for node in step.nodes if node in nodes)
        if not among:
            continue
        # Lists that follow from sizes are inputs in a family, and constants in an exact plan.
        ports = [port for port in (*step.inputs, *step.outputs) if "int" not in port.type]
        # A layout may decide in which order a kernel sums; these do not sum.
        is_alike = step.algorithm == "view" or step.algorithm.startswith("elements")
        layouts = () if is_alike else tuple(port.layout for port in ports)
        choice.add((among, step.backend, step.algorithm, layouts))
    return choice


def test_pinned_kernels_give_the_bits_of_the_family(tessera, network, needs_native, is_long):
    """Exact plans are pinned to the kernels of the family.

    With one thread, because a step gets as many threads as its sizes are worth, and some kernels,
    such as that of GroupNormalization, add up the sums of their threads.
    """
    model, sizes = network
    random = np.random.default_rng(5)
    loaded = tessera.load(model.SerializeToString())
    first = open_models.draw_inputs(model, sizes, random)
    excluded = [tessera.Exclusion("native", op) for op in folded_ops(model)]
    chosen = {"threads": 1, "optimize": False, "backends": ["native"], "exclude": excluded}
    executor = loaded.bind(shapes_of(first), **chosen)
    compared = 0
    for _ in range(60 if is_long else 6):
        arrays = open_models.draw_inputs(model, sizes, random)
        found = executor.run(arrays)
        family = executor.plan()
        exact = loaded.bind(shapes_of(arrays), families=False, **chosen)
        # The exact plan lacks the nodes that it folded, and has those of lowered Einsums.
        nodes = nodes_of(family) & nodes_of(exact.plan())
        pins = [tessera.Pin(node, step.backend, step.algorithm)
                for step in family.steps for node in step.nodes if node in nodes]
        try:
            pinned = loaded.bind(shapes_of(arrays), families=False, pins=pins, **chosen)
        except tessera.Unsupported:
            continue  # kernels for small sizes are others
        if choice_of(pinned.plan(), nodes) != choice_of(family, nodes):
            continue
        for one, other in zip(pinned.run(arrays), found, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=str(shapes_of(arrays)))
        compared += 1
    assert compared > 0


def convolution_model():
    """Two 3x3 convolutions on an image of any height and width."""
    random = np.random.default_rng(3)
    weights = [(name, random.standard_normal((32, 32, 3, 3)).astype(np.float32) / 20)
               for name in ("v", "w")]
    nodes = [helper.make_node("Conv", ["x", "v"], ["inner"], name="first", pads=[1] * 4),
             helper.make_node("Relu", ["inner"], ["positive"], name="relu"),
             helper.make_node("Conv", ["positive", "w"], ["y"], name="second", pads=[1] * 4)]
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 32, "h", "w"])
              for name in ("x", "y")]
    graph = helper.make_graph(nodes, "image", values[:1], values[1:],
                              [numpy_helper.from_array(array, name) for name, array in weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def kernels_of(executor):
    return [(step.name, step.backend, step.algorithm) for step in executor.plan().steps]


def test_far_sizes_get_kernels_of_their_own(tessera, needs_native):
    """The transform of a convolution that is fastest depends on how many tiles an image has."""
    model = tessera.load(convolution_model().SerializeToString())
    image = {size: np.ones((1, 32, size, size), np.float32) for size in (5, 6, 7, 130, 131, 132)}
    large = model.bind(image_shape(130), threads=1, optimize=False, backends=["native"])
    large.run({"x": image[131]})
    small = model.bind(image_shape(5), threads=1, optimize=False, backends=["native"])
    small.run({"x": image[6]})
    assert kernels_of(small) != kernels_of(large), "the network does not show what it should"
    for size, other in ((132, large), (7, small), (132, large)):
        found = small.run({"x": image[size]})
        assert kernels_of(small) == kernels_of(other)
    np.testing.assert_array_equal(found[0], large.run({"x": image[132]})[0])
    assert len(small.shapes().plans) == 3, "one for the bound size, and two families"
    ranged = model.bind({"x": (1, 32, range(4, 200), range(4, 200))}, threads=1, optimize=False,
                        backends=["native"])
    for size, other in ((7, small), (132, large)):
        other.run({"x": image[size]})
        ranged.run({"x": image[size]})
        assert kernels_of(ranged) == kernels_of(other)


def image_shape(size):
    return {"x": (1, 32, size, size)}


def test_far_sizes_share_a_family_with_their_kernels(tessera, needs_native):
    model, _ = open_models.perceptron()
    executor = tessera.load(model.SerializeToString()).bind({"x": (3, 12)}, threads=1, optimize=False,
                                                            backends=["native"])
    for rows in (4, 4000, 9, 70, 2000):
        assert executor.run({"x": np.ones((rows, 12), np.float32)})[0].shape == (rows, 8)
    assert len(executor.shapes().plans) == 2


def resizing_model(mode, by_floats):
    """Twice the height and width; exporters compute that with floating-point numbers."""
    nodes, weights = [], []

    def add(op, *inputs, **attributes):
        name = f"{op}_{len(nodes)}"
        nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def constant(array):
        weights.append(numpy_helper.from_array(array, f"constant_{len(weights)}"))
        return weights[-1].name

    shape = add("Shape", "x")
    begin, middle, end = (constant(np.array([at])) for at in (0, 2, 4))
    sizes = add("Slice", shape, middle, end)
    if by_floats:
        doubled = add("Mul", add("Cast", sizes, to=onnx.TensorProto.FLOAT),
                      constant(np.float32(2.25)))
        sizes = add("Cast", add("Floor", doubled), to=onnx.TensorProto.INT64)
    else:
        sizes = add("Mul", sizes, constant(np.array(2)))
    sizes = add("Concat", add("Slice", shape, begin, middle), sizes, axis=0)
    resized = add("Resize", "x", "", "", sizes, mode=mode)
    add("Conv", resized, constant(np.ones((3, 8, 3, 3), np.float32)), pads=[1] * 4)
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
              for name, shape in (("x", [1, 8, "h", "w"]), (nodes[-1].output[0], [1, 3, None, None]))]
    graph = helper.make_graph(nodes, "resizing", values[:1], values[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("by_floats", [False, True], ids=["integers", "floats"])
def test_sizes_that_a_model_computes_are_known_to_its_family(tessera, needs_native, mode, by_floats):
    """Otherwise all that follows the Resize would be computed by the reference."""
    model = resizing_model(mode, by_floats)
    session = session_of(model)
    executor = tessera.load(model.SerializeToString()).bind(threads=1, optimize=False)
    random = np.random.default_rng(7)
    for height, width in ((12, 20), (15, 33), (40, 21), (9, 64)):
        feeds = {"x": random.standard_normal((1, 8, height, width)).astype(np.float32)}
        found, expected = executor.run(feeds), session.run(None, feeds)
        assert found[0].shape[2] == (height * 9 // 4 if by_floats else height * 2)
        assert not explain_difference(expected[0], found[0])
    assert len(executor.shapes().plans) == 2, "one for the first sizes, one for all others"
    assert {step.backend for step in executor.plan().steps} <= {"native", ""}
