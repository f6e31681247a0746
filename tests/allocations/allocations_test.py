"""Tessera itself allocates nothing in a run on bound memory; allocations by libraries are counted
separately."""

import json
import pathlib
import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from programs import json_of, run_program
from small_models import model_of, node, save_model, tensor_type

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = 100
# Of five type rules.
MOST_OF_RULES = 40
ZOO = ("chess", "squeezenet", "resnet50", "bert_mini")

# The values of these ops' inputs decide the sizes of their outputs, which are therefore allocated
# in the run.
OF_UNKNOWN_SIZE = {"BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow",
                   "MelWeightMatrix", "NonMaxSuppression", "NonZero", "Range", "Unique"}
# ONNX has no examples of these.
WITHOUT_CASE = {"MaxRoiPool"}


@pytest.fixture(scope="session")
def count_all(bin_dir):
    """For each model, the line that count_allocations prints, parsed."""
    program = bin_dir / "count_allocations"
    if not program.exists():
        pytest.skip(f"{program} is not built: sanitizers replace malloc themselves")

    def run(models, backends, threads=1, runs=RUNS, option=None):
        options = [option] if option else []
        done = run_program(program, *options, backends, threads, runs, *models)
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


@pytest.fixture(scope="session")
def count(count_all):
    def run(model, *arguments):
        (counts,) = count_all([model], *arguments)
        assert "error" not in counts, counts["error"]
        return counts

    return run


@pytest.fixture(scope="session")
def small_model(tmp_path_factory):
    """A convolution, sums in place, a view, a joint value, and an output that is a copy of an
    input."""
    rng = np.random.default_rng(3)
    weight = rng.standard_normal((8, 3, 3, 3)).astype(np.float32)
    nodes = [node("Conv", "x w", "c", pads=[1] * 4), node("Relu", "c", "r"),
             node("Add", "r c", "s"), node("Concat", "s r", "j", axis=1),
             node("GlobalAveragePool", "j", "p"), node("Flatten", "p", "f"),
             node("Softmax", "f", "y"), node("Identity", "x", "same")]
    return save_model(tmp_path_factory.mktemp("allocations") / "small.onnx", nodes,
                      {"x": [1, 3, 16, 16]}, {"y": [1, 16], "same": [1, 3, 16, 16]}, {"w": weight})


@pytest.fixture(scope="session")
def wide_model(tmp_path_factory):
    """Each node has enough work for several threads, and its reference kernel needs memory on each
    of them."""
    rng = np.random.default_rng(4)
    constants = {
        "conv": rng.standard_normal((16, 8, 3, 3)).astype(np.float32),
        "matrix": rng.standard_normal((64, 64)).astype(np.float32),
        "row": rng.standard_normal((16, 1, 64)).astype(np.float32),
        "scales": np.array([1, 1, 2, 0.5], np.float32),
        "k": np.array([5], np.int64),
    }
    nodes = [node("Conv", "x conv", "c", pads=[1] * 4), node("Add", "c row", "a"),
             node("MatMul", "a matrix", "m"), node("Transpose", "m", "t", perm=[0, 3, 1, 2]),
             node("Resize", ["t", "", "scales"], "z", mode="linear"),
             node("ReduceMax", "z", "d", axes=[1, 3], keepdims=0),
             node("TopK", "t k", "values places", axis=1)]
    places = tensor_type(TensorProto.INT64, [1, 5, 16, 64])
    return save_model(tmp_path_factory.mktemp("allocations") / "wide.onnx", nodes,
                      {"x": [1, 8, 64, 64]},
                      {"d": [1, 32], "values": [1, 5, 16, 64], "places": places}, constants)


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("backend", ("native", "reference"))
@pytest.mark.parametrize("model", ("small_model", "wide_model"))
def test_plans_allocate_nothing(count, request, model, backend, threads, need_backend):
    need_backend(backend)
    counts = count(request.getfixturevalue(model), backend, threads)
    assert counts["total"] == counts["library"]
    # With several threads, the thread library allocates its tasks.
    assert threads > 1 or counts["total"] == 0


@pytest.fixture(scope="session")
def open_model(tmp_path_factory):
    """Two layers with sizes that the model computes, which are alike but for their weights."""
    rng = np.random.default_rng(5)
    nodes, value = [node("Shape", "x", "shape")], "x"
    for layer in range(2):
        nodes += [node("MatMul", [value, f"w{layer}"], f"m{layer}"),
                  node("Relu", f"m{layer}", f"r{layer}"),
                  node("Reshape", [f"r{layer}", "shape"], f"s{layer}"),
                  node("Add", [f"s{layer}", value], f"a{layer}")]
        value = f"a{layer}"
    weights = {f"w{layer}": rng.standard_normal((8, 8)).astype(np.float32) for layer in range(2)}
    return save_model(tmp_path_factory.mktemp("allocations") / "open.onnx", nodes,
                      {"x": ["rows", 8]}, {value: ["rows", 8]}, weights)


def test_a_new_shape_allocates_for_its_type_rules_only(count_all, open_model, need_backend):
    """The rules of one layer: the second layer takes the sizes of the first one."""
    need_backend("native")
    [counts] = count_all([open_model], "native", option="--new-shapes")
    assert "error" not in counts, counts["error"]
    assert counts["total"] <= MOST_OF_RULES * RUNS


def test_elementwise_work_of_onednn_keeps_its_memory_objects(count, tmp_path, needs_onednn):
    """The library itself allocates a few times in each run; objects for its arguments would be tens
    of allocations more, which take longer than a small sum."""
    size = [1, 1000]
    model = save_model(tmp_path / "add.onnx", [node("Add", "x y", "z")], {"x": size, "y": size},
                       {"z": size})
    counts = count(model, "onednn")
    assert 0 < counts["total"] <= 15 * RUNS


def node_cases():
    """The cases that the onnx package generates. Generating them prints intended overflow warnings.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return collect_testcases(None)


def fed_with_one(case):
    """The case's model with only its first input fed and the others constant; otherwise most sizes
    would be unknown."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    inputs = list(graph.input)
    for value, array in list(zip(inputs, case.data_sets[0][0]))[1:]:
        constant = array if isinstance(array, TensorProto) else numpy_helper.from_array(
            np.asarray(array))
        constant.name = value.name
        graph.initializer.append(constant)
        graph.input.remove(value)
    for entry in model.opset_import:
        entry.version = max(entry.version, 6)  # import converts older ones to it
    return model


def models_of_ops_without_cases():
    for op in ("RandomNormal", "RandomUniform"):
        yield op, model_of([node(op, [], "y", shape=[2, 3])], [], {"y": [2, 3]})
    for op in ("RandomNormalLike", "RandomUniformLike"):
        yield op, model_of([node(op, seed=1.0)], {"x": [2, 3]}, {"y": [2, 3]})
    yield "GlobalLpPool", model_of([node("GlobalLpPool", p=3)], {"x": [1, 2, 5]}, {"y": [1, 2, 1]})
    yield "Multinomial", model_of([node("Multinomial", sample_size=4)], {"x": [2, 3]},
                                  {"y": tensor_type(TensorProto.INT32, [2, 4])})


def runs_on_values(op):
    """Whether its kernel makes the tensors that it gives."""
    return (op in ("If", "Loop", "Scan", "RegexFullMatch", "TfIdfVectorizer")
            or "Sequence" in op or op.startswith(("Optional", "String")))


def test_no_kernel_of_the_reference_allocates(count_all, bin_dir, tmp_path):
    ours = {op["name"] for op in json_of(bin_dir / "print_op_table")
            if not op["domain"] and not runs_on_values(op["name"])
            and onnx.defs.has(op["name"])}  # cases of ONNX Runtime's ops do not exist
    paths = {}
    for case in node_cases():
        ops = {node.op_type for node in case.model.graph.node if not node.domain}
        if not ops <= ours or any(node.domain for node in case.model.graph.node):
            continue
        if any(value.type.tensor_type.elem_type == onnx.TensorProto.STRING
               for value in case.model.graph.input):
            continue  # runs on values
        try:
            model = fed_with_one(case)
        except (TypeError, ValueError, AttributeError):
            continue  # values that numpy cannot represent, such as sequences
        path = tmp_path / f"{case.name}.onnx"
        onnx.save(model, path)
        # Cases of several nodes are not attributed to ops, because some of their nodes are folded.
        paths[path] = ops if len(model.graph.node) == 1 else set()
    for op, model in models_of_ops_without_cases():
        path = tmp_path / f"{op}.onnx"
        onnx.save(model, path)
        paths[path] = {op}
    found = count_all(list(paths), "reference", 1, 3)
    assert len(found) == len(paths)
    for path, counts in zip(paths, found):
        print(path.stem, counts)
    allocating = {path.stem: counts["total"] for path, counts in zip(paths, found)
                  if counts.get("total", 0) > 0}
    assert not allocating
    # Not every case runs with only one input fed, but at least one case of each op does.
    counted = set().union(*(ops for ops, counts in zip(paths.values(), found)
                            if "total" in counts))
    assert ours - counted == OF_UNKNOWN_SIZE | WITHOUT_CASE


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("network", ZOO)
def test_networks_allocate_only_within_libraries(count, network, threads, need_backend, capsys):
    model = ROOT / "build/zoo" / network / "model.onnx"
    if not model.exists():
        pytest.skip("the zoo is not here")
    # On the reference, the ops that these two lack would take minutes.
    for name in ("onednn", "native"):
        need_backend(name)
    counts = count(model, "onednn,native", threads)
    with capsys.disabled():
        print(f"\n{network}, {threads} threads, {RUNS} runs: {counts['library']} allocations by "
              "libraries")
    assert counts["total"] == counts["library"]
