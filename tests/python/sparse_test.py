"""Sparse inputs, outputs and constants: feeding them, their results, and refusals."""

import re

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from small_models import node, tensor_type

FLOAT = TensorProto.FLOAT
GENERATOR = np.random.default_rng(3)


def random_matrix(rows, columns, density, generator=GENERATOR):
    dense = generator.standard_normal((rows, columns)).astype(np.float32)
    dense[generator.random((rows, columns)) >= density] = 0
    return dense


class ScipyLike:
    """Has the attributes of SciPy's csr_array that Tessera uses."""

    format = "csr"

    def __init__(self, dense):
        self.shape = dense.shape
        present = dense != 0
        self.indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int32)
        self.indices = np.nonzero(present)[1].astype(np.int32)
        self.data = dense[present]


def csr(tessera, dense):
    like = ScipyLike(dense)
    return tessera.csr_array(like.indptr, like.indices, like.data, like.shape)


@pytest.fixture
def linear(tessera, save_model):
    """y = x w + b, with any number of rows of x; returns the model, w and b."""
    weight = GENERATOR.standard_normal((40, 7)).astype(np.float32)
    bias = GENERATOR.standard_normal(7).astype(np.float32)
    path = save_model([node("MatMul", "x w", "xw", "product"), node("Add", "xw b", "y", "sum")],
                      {"x": ["rows", 40]}, {"y": ["rows", 7]}, {"w": weight, "b": bias})
    return tessera.load(path), weight, bias


def has_backend(tessera, name):
    return any(each.name == name and each.is_usable for each in tessera.backends())


def steps(executor):
    return [(step.op, step.backend) for step in executor.plan().steps]


def test_array_gives_back_what_it_was_made_of(tessera):
    array = tessera.csr_array([0, 2, 2, 3], [1, 3, 0], np.array([5, 6, 7], np.float32), (3, 4))
    assert (array.format, array.shape, array.dtype, array.stored) == ("csr", (3, 4), "float32", 3)
    assert array.density == 0.25
    assert array.indptr.tolist() == [0, 2, 2, 3]
    assert array.indices.tolist() == [1, 3, 0]
    assert array.data.tolist() == [5, 6, 7]
    assert array.to_dense().tolist() == [[0, 5, 0, 6], [0, 0, 0, 0], [7, 0, 0, 0]]
    rows = tessera.row_sparse_array([1, 3], np.ones((2, 2), np.float16), (4, 2))
    assert (rows.format, rows.stored, rows.dtype) == ("row_sparse", 2, "float16")
    assert rows.indices.tolist() == [1, 3]
    assert rows.data.shape == (2, 2)
    with pytest.raises(AttributeError, match="indptr"):
        rows.indptr


@pytest.mark.parametrize("indptr, indices, says", [
    ([0, 1], [0, 1], "row_offsets: expected 3 of them, found 2"),
    ([0, 1, 3], [0, 1], "end with, found 3 as row_offsets[2]"),
    ([0, 2, 1], [0, 1], "expected at least 2, found 1 as row_offsets[2]"),
    ([0, 2, 2], [1, 0], "found 0 as columns[1] after 1 (row 0)"),
    ([0, 2, 2], [1, 1], "without repetition"),
    ([0, 1, 2], [0, 3], "expected 0 to 2, found 3 as columns[1] (row 1)"),
])
def test_malformed_arrays_say_what_and_where(tessera, indptr, indices, says):
    with pytest.raises(tessera.InvalidArgument, match=re.escape(says)):
        tessera.csr_array(indptr, indices, np.ones(2, np.float32), (2, 3))


def test_product_with_csr_is_that_of_dense(tessera, linear):
    model, weight, bias = linear
    dense = random_matrix(30, 40, 0.1)
    executor = model.bind({"x": dense.shape}, layouts={"x": "csr:200"})
    assert executor.inputs[0].layout == "csr:200"
    for given in (csr(tessera, dense), ScipyLike(dense)):
        y, = executor.run({"x": given})
        np.testing.assert_allclose(y, dense @ weight + bias, rtol=1e-4, atol=1e-5)
    port = executor.plan().steps[0].inputs[0]
    if has_backend(tessera, "native"):
        assert steps(executor)[0] == ("MatMul", "native")
        assert (port.layout, port.capacity, port.density) == ("csr:200", 200, 200 / 1200)


def test_other_shapes_have_the_capacity_that_was_named(tessera, linear):
    model, weight, bias = linear
    dense = random_matrix(30, 40, 0.1)
    executor = model.bind({"x": dense.shape}, layouts={"x": "csr:200"})
    for rows in (30, 12, 30, 21):
        y, = executor.run({"x": csr(tessera, dense[:rows])})
        np.testing.assert_allclose(y, dense[:rows] @ weight + bias, rtol=1e-4, atol=1e-5)
        assert executor.inputs[0].layout == "csr:200" and executor.inputs[0].shape == (rows, 40)


def test_fed_otherwise_than_bound(tessera, linear):
    model, _, _ = linear
    dense = random_matrix(30, 40, 0.1)
    executor = model.bind({"x": dense.shape}, layouts={"x": "csr:20"})
    with pytest.raises(tessera.InvalidArgument, match="input 'x': expected float32 30x40 in csr:20, "
                                                      "found float32 30x40, which is dense"):
        executor.run(dense)
    sparse = csr(tessera, dense)
    with pytest.raises(tessera.InvalidArgument,
                       match=f"at most 20 elements.*csr:20.*found {sparse.stored}"):
        executor.run(sparse)
    fixed = model.bind({"x": dense.shape}, layouts={"x": "csr:200"}, fixed_shapes=True)
    with pytest.raises(tessera.InvalidArgument, match="expected float32 30x40, as it was bound with "
                                                      "fixed_shapes, found float32 29x40"):
        fixed.run(csr(tessera, dense[1:]))
    rows = tessera.row_sparse_array([0], dense[:1], dense.shape)
    with pytest.raises(tessera.InvalidArgument, match="found float32 30x40 in row_sparse"):
        executor.run(rows)
    with pytest.raises(tessera.InvalidArgument, match="bind with layouts that say so"):
        model.bind({"x": dense.shape}).run(sparse)
    column_wise = ScipyLike(dense)
    column_wise.format = "csc"
    with pytest.raises(tessera.InvalidArgument, match=r"'csc'; convert it with tocsr\(\)"):
        executor.run(column_wise)
    unsorted = ScipyLike(dense)
    unsorted.indices = unsorted.indices[::-1].copy()
    with pytest.raises(tessera.InvalidArgument, match="input 'x': csr tensor 30x40: columns"):
        executor.run(unsorted)


def test_room_for_a_tenth_where_no_capacity_is_given(tessera, linear):
    model, _, _ = linear
    assert model.bind({"x": (30, 40)}, layouts={"x": "csr"}).inputs[0].layout == "csr:120"
    assert model.bind({"x": (3, 40)}, layouts={"x": "row_sparse"}).inputs[0].layout == "row_sparse:1"
    assert model.bind({"x": (3, 40)}, layouts={"x": "row_major"}).inputs[0].layout == "row_major"


def test_outputs_come_in_csr(tessera, save_model):
    path = save_model([node("Relu", "x", "y", "relu")], {"x": [20, 30]}, {"y": [20, 30]})
    model = tessera.load(path)
    dense = random_matrix(20, 30, 0.2)
    expected = np.maximum(dense, 0)
    both, = model.bind(layouts={"x": "csr:600", "y": "csr:600"}).run(csr(tessera, dense))
    assert both.format == "csr"
    np.testing.assert_array_equal(both.to_dense(), expected)
    made, = model.bind(layouts={"y": "row_sparse:20"}).run(dense)
    assert made.format == "row_sparse"
    np.testing.assert_array_equal(made.to_dense(), expected)
    few = int((expected != 0).sum())
    exact, = model.bind(layouts={"y": f"csr:{few}"}).run(dense)
    assert exact.stored == few
    with pytest.raises(tessera.InvalidArgument, match=f"value 'y': expected at most {few - 1} elements"
                                                      f".*found {few}; bind with"):
        model.bind(layouts={"y": f"csr:{few - 1}"}).run(dense)


def test_what_no_kernel_takes_sparse_is_converted_and_told_once(tessera, save_model):
    path = save_model([node("Exp", "x", "e", "exp"), node("Add", "e x", "y", "sum")],
                      {"x": [20, 30]}, {"y": [20, 30]})
    messages = []
    model = tessera.load(path, log=messages.append)
    dense = random_matrix(20, 30, 0.2)
    layouts = {"x": "csr:600"}
    executor = model.bind(layouts=layouts)
    model.bind(layouts=layouts)
    y, = executor.run(csr(tessera, dense))
    np.testing.assert_allclose(y, np.exp(dense) + dense, rtol=1e-5, atol=1e-6)
    convert = next(step for step in executor.plan().steps if step.op == "convert")
    assert (convert.inputs[0].layout, convert.outputs[0].layout) == ("csr:600", "row_major")
    told = [message for message in messages if "node 'exp' (Exp)" in message]
    assert len(told) == 1
    assert "value 'x' (csr:600)" in told[0] and "row_major" in told[0]
    with pytest.raises(tessera.Unsupported, match=r"node 'exp' \(Exp\).*value 'x' \(csr:600\)"):
        model.bind(layouts=layouts, strict_storage=True)


@pytest.mark.parametrize("capacity, rows, sparse_wins", [
    (2000, 1000, True),     # 0.2 %
    (900000, 1000, False),  # 90 %
    (8, 4, True),
])
def test_density_decides_between_sparse_and_dense_kernels(tessera, save_model, capacity, rows,
                                                          sparse_wins):
    if not has_backend(tessera, "native") or not has_backend(tessera, "onednn"):
        pytest.skip("needs the backends native and onednn")
    depth = 1000
    weight = GENERATOR.standard_normal((depth, 512)).astype(np.float32)
    path = save_model([node("MatMul", "x w", "y", "product")], {"x": [rows, depth]},
                      {"y": [rows, 512]}, {"w": weight})
    messages = []
    model = tessera.load(path, log=messages.append)
    layouts = {"x": f"csr:{capacity}"}
    executor = model.bind(layouts=layouts)
    assert ("convert" not in [op for op, _ in steps(executor)]) == sparse_wins
    assert bool(messages) != sparse_wins
    if not sparse_wins:
        assert "costs less than the sparse kernel of native" in messages[0]
        # This holds at any price.
        strict = model.bind(layouts=layouts, strict_storage=True)
        assert steps(strict) == [("MatMul", "native")]


def test_type_decides_too(tessera, save_model):
    path = save_model([node("MatMul", "x w", "y", "product")],
                      {"x": tensor_type(TensorProto.DOUBLE, [50, 40]),
                       "w": tensor_type(TensorProto.DOUBLE, [40, 3])},
                      {"y": tensor_type(TensorProto.DOUBLE, [50, 3])})
    executor = tessera.load(path, log=lambda message: None).bind(layouts={"x": "csr"})
    assert [op for op, _ in steps(executor)] == ["convert", "MatMul"]
    dense = random_matrix(50, 40, 0.05).astype(np.float64)
    weight = GENERATOR.standard_normal((40, 3))
    y, = executor.run({"x": csr(tessera, dense), "w": weight})
    np.testing.assert_allclose(y, dense @ weight, rtol=1e-10)


@pytest.mark.parametrize("is_node", [False, True])
@pytest.mark.parametrize("is_linear", [False, True])
def test_sparse_constants(tessera, save_model, is_node, is_linear):
    weight = random_matrix(60, 50, 0.03)
    indices = np.flatnonzero(weight) if is_linear else np.argwhere(weight)
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(weight[weight != 0], "w"),
        numpy_helper.from_array(indices.astype(np.int64)), list(weight.shape))
    nodes = [node("Constant", [], "w", sparse_value=sparse)] if is_node else []
    nodes += [node("MatMul", "x w", "y", "product"), node("Abs", "w", "z", "abs")]
    path = save_model(nodes, {"x": [9, 60]}, "y z", sparse_initializer=[] if is_node else [sparse])
    executor = tessera.load(path, log=lambda message: None).bind()
    x = GENERATOR.standard_normal((9, 60)).astype(np.float32)
    y, z = executor.run(x)
    np.testing.assert_allclose(y, x @ weight, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(z, np.abs(weight))
    if has_backend(tessera, "native"):
        product = next(step for step in executor.plan().steps if step.op == "MatMul")
        assert product.backend == "native"
        assert product.inputs[1].layout == f"csr:{(weight != 0).sum()}"


def test_large_sparse_constant_is_never_dense(tessera, save_model):
    """As a dense tensor it would need 4 TB."""
    if not has_backend(tessera, "native"):
        pytest.skip("needs the backend native")
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.array([2, 3], np.float32), "w"),
        numpy_helper.from_array(np.array([[0, 1], [999_999, 2]], np.int64)), [1_000_000, 1_000_000])
    path = save_model([node("ReduceSum", "w axes", "y", "sum", keepdims=0)], {},
                      {"y": [1_000_000]}, {"axes": [1]}, sparse_initializer=[sparse])
    y, = tessera.load(path).bind().run({})
    assert (y[0], y[-1], np.abs(y).sum()) == (2, 3, 5)


def test_rows_are_gathered_and_added_to(tessera, save_model):
    table = np.zeros((100, 8), np.float32)
    table[[3, 50, 99]] = GENERATOR.standard_normal((3, 8))
    path = save_model([node("ScatterND", "t i u", "s", "scatter", reduction="add"),
                       node("Gather", "s j", "y", "gather")],
                      {"t": [100, 8], "i": tensor_type(TensorProto.INT64, [4, 1]), "u": [4, 8],
                       "j": tensor_type(TensorProto.INT64, [3])}, {"y": [3, 8], "s": [100, 8]})
    executor = tessera.load(path).bind(layouts={"t": "row_sparse:3", "s": "row_sparse:7"})
    updates = GENERATOR.standard_normal((4, 8)).astype(np.float32)
    rows = tessera.row_sparse_array([3, 50, 99], table[[3, 50, 99]], table.shape)
    given = {"t": rows, "i": np.array([[3], [7], [7], [-1]]), "u": updates, "j": np.array([7, 0, -1])}
    y, s = executor.run(given)
    for row, update in zip([3, 7, 7, 99], updates):
        table[row] += update
    np.testing.assert_allclose(s.to_dense(), table, rtol=1e-6)
    np.testing.assert_allclose(y, table[[7, 0, 99]], rtol=1e-6)
    assert s.indices.tolist() == [3, 7, 50, 99]
    if has_backend(tessera, "native"):
        assert {backend for _, backend in steps(executor)} == {"native"}
        with pytest.raises(tessera.InvalidArgument, match=r"node 'gather'.*\[-100, 100\), found 100"):
            executor.run({**given, "j": np.array([0, 100, 0])})
