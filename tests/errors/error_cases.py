"""Invalid models and requests, one row each: how to make it, the exit code, and what the message
must contain. A new case is a new row."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from small_models import node

FLOAT = TensorProto.FLOAT


@dataclass
class Case:
    name: str
    # Writes files into a folder and returns the arguments of `tessera`.
    arguments: Callable[[Path], list]
    says: tuple[str, ...]  # each must be part of the message
    exit_code: int = 2
    kind: str = "InvalidModel"


# --- Building models ----------------------------------------------------------------------------------


def value(name, shape=(1, 2), element=FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def opset_ids(versions):
    return [helper.make_opsetid(*each) for each in versions.items()]


def make_model(nodes, inputs=None, outputs=None, weights=(), opset=17, **more):
    graph = helper.make_graph(
        nodes, "g", inputs or [value("x")], outputs or [value("y")], list(weights),
        value_info=more.pop("value_info", []))
    return helper.make_model(graph, opset_imports=opset_ids(more.pop("opsets", {"": opset})),
                             ir_version=8, **more)


def write_model(folder: Path, model: onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def inspect(model) -> Callable[[Path], list]:
    """`tessera inspect` of a model, of bytes, or of nothing (None: the file is missing)."""

    def arguments(folder: Path) -> list:
        path = folder / "model.onnx"
        if isinstance(model, bytes):
            path.write_bytes(model)
        elif model is not None:
            write_model(folder, model)
        return ["inspect", path]

    return arguments


def relu_model(**more):
    return make_model([node("Relu", name="relu")], **more)


def run(model, *arguments, arrays=None) -> Callable[[Path], list]:
    """`tessera run`; every array is written to <name>.npy and fed under that name."""

    def build(folder: Path) -> list:
        command = ["run", write_model(folder, model), *arguments]
        for name, array in (arrays or {}).items():
            np.save(folder / f"{name}.npy", array)
            command += ["--input", f"{name}={folder / name}.npy"]
        return command

    return build


def sparse_model(indices, dims=(4, 2)) -> onnx.ModelProto:
    """x + s; s has two stored elements."""
    model = make_model([node("Add", "x s", "y", name="n")])
    sparse = model.graph.sparse_initializer.add(dims=dims)
    sparse.values.CopyFrom(numpy_helper.from_array(np.array([1, 2], np.float32), "s"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array(indices, np.int64)))
    return model


def bound_with(*layouts, op="Relu", more=()) -> Callable[[Path], list]:
    """`tessera run` of one node, with requested layouts of its input or output."""

    def arguments(folder: Path) -> list:
        path = write_model(folder, make_model([node(op, name="n")]))
        options = [part for layout in layouts for part in ("--layout", layout)]
        return ["run", path, "--random", "1", *options, *more]

    return arguments


def external_weight(location, offset=None, length=None, dims=(1, 2)):
    tensor = TensorProto(name="w", data_type=FLOAT, dims=dims)
    tensor.data_location = TensorProto.EXTERNAL
    for key, entry in (("location", location), ("offset", offset), ("length", length)):
        if entry is not None:
            tensor.external_data.add(key=key, value=str(entry))
    return tensor


def external(location, prepare=lambda folder: None, **more) -> Callable[[Path], list]:
    def build(folder: Path) -> list:
        inner = folder / "inner"
        inner.mkdir()
        prepare(folder)
        text = str(location(folder)) if callable(location) else location
        model = make_model([node("Add", "x w", "y")], weights=[external_weight(text, **more)])
        return ["inspect", write_model(inner, model)]

    return build


def write_outside(folder: Path) -> None:
    (folder / "outside.bin").write_bytes(bytes(64))


def link_outside(folder: Path) -> None:
    write_outside(folder)
    os.symlink(folder / "outside.bin", folder / "inner" / "link.bin")


def link_folder_outside(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "w.bin").write_bytes(bytes(64))
    os.symlink(folder / "other", folder / "inner" / "linked")


def write_short(folder: Path) -> None:
    (folder / "inner" / "w.bin").write_bytes(bytes(4))


LOCAL = {"": 17, "local": 1}


def function_model(functions, nodes):
    return make_model(nodes, functions=functions, opsets=LOCAL)


def function(name, nodes, inputs=("a",), outputs=("b",)):
    return helper.make_function("local", name, list(inputs), list(outputs), nodes,
                                opset_ids(LOCAL))


def call(name, inputs, outputs):
    return helper.make_node(name, inputs, outputs, domain="local", name=f"call_{name}")


def length_delimited(field_number: int, payload: bytes) -> bytes:
    """One field of protobuf's wire format: Python's protobuf refuses to nest as deeply as the tests
    need."""
    length = len(payload)
    size = bytearray()
    while length > 0x7F:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    size.append(length)
    return bytes([field_number << 3 | 2]) + bytes(size) + payload


def nested_ifs(depth: int) -> bytes:
    """A model whose innermost graph is nested in `depth` If nodes; each gives its condition c."""
    output = flag("out")
    innermost = node("Identity", "c", "out").SerializeToString()
    graph = length_delimited(1, innermost) + length_delimited(12, output)
    for level in range(depth):
        # GraphProto.node = 1, .output = 12; NodeProto.attribute = 5; AttributeProto.g = 6.
        attribute = onnx.AttributeProto(name="then_branch", type=onnx.AttributeProto.GRAPH)
        attribute_bytes = attribute.SerializeToString() + length_delimited(6, graph)
        else_branch = helper.make_graph(
            [node("Not", ["c"], [f"else_{level}"])], "else", [],
            [value(f"else_{level}", (), TensorProto.BOOL)])
        other = helper.make_attribute("else_branch", else_branch).SerializeToString()
        name = f"out_{level}"
        node_bytes = node("If", ["c"], [name]).SerializeToString()
        node_bytes += length_delimited(5, attribute_bytes) + length_delimited(5, other)
        graph = length_delimited(1, node_bytes)
        graph += length_delimited(12, flag(name))
    model = onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 17)])
    return model.SerializeToString() + length_delimited(7, graph + length_delimited(11, flag("c")))


def flag(name: str) -> bytes:
    return value(name, (), TensorProto.BOOL).SerializeToString()


def conv_model(weight_shape=(4, 3, 3, 3), input_shape=(1, 3, 8, 8), **attributes):
    weight = numpy_helper.from_array(np.zeros(weight_shape, np.float32), "w")
    nodes = [node("Conv", "x w", "y", name="conv1", **attributes)]
    output = helper.make_tensor_value_info("y", FLOAT, None)
    return make_model(nodes, [value("x", input_shape)], [output], [weight])


CASES = [
    # --- the file ---
    Case("missing file", inspect(None), ("model.onnx",), kind="InvalidArgument"),
    Case("a folder", lambda folder: ["inspect", folder], (), kind="InvalidArgument"),
    Case("empty file", inspect(b""), ("empty",)),
    Case("not protobuf", inspect(b"this is no model" * 9), ("protobuf",)),
    Case("no graph", inspect(helper.make_model(helper.make_graph([], "g", [], []))
                             .SerializeToString()[:3]), ()),
    Case("truncated", inspect(conv_model().SerializeToString()[:200]), ()),
    Case("no operator set", inspect(relu_model(opsets={})), ("opset",)),
    Case("newer operator set", inspect(relu_model(opset=99)), ("99", "28"), kind="Unsupported"),
    Case("older operator set", inspect(relu_model(opset=0)), ("0", "1"), kind="Unsupported"),
    # --- nodes ---
    Case("unknown op", inspect(make_model([node("Reluu", name="n")])),
         ("node 'n' (Reluu)", "Relu"), kind="Unsupported"),
    Case("unknown domain", inspect(make_model(
        [node("Relu", domain="com.example", name="n")],
        opsets={"": 17, "com.example": 1})),
        ("node 'n' (Relu)", "com.example"), kind="Unsupported"),
    Case("op that this build lacks",
         inspect(make_model([node("ImageDecoder", name="n")], opset=20)),
         ("node 'n' (ImageDecoder)", "ImageDecoder of ai.onnx is not in this build"),
         kind="Unsupported"),
    Case("all ops that this build lacks",
         inspect(make_model([node("ImageDecoder", "x", "d", name="n"), node("Affine", "x", "h"),
                             node("Affine")], opset=20)),
         ("2 things", "Affine of ai.onnx is not in this build", "(2 nodes",
          "ImageDecoder of ai.onnx is not in this build (1 node"), kind="Unsupported"),
    Case("ops and element types that this build lacks",
         inspect(make_model([node("Affine", name="n"), node("Identity", "s", "t")],
                            [value("x"), value("s", element=TensorProto.COMPLEX64),
                             value("e", element=TensorProto.FLOAT6E2M3)])),
         ("Affine of ai.onnx", "elements of complex64", "elements of float6e2m3", "graph input 's'"),
         kind="Unsupported"),
    Case("what the branches of an If lack",
         inspect(make_model([node("If", "c", name="n", **{
             name: helper.make_graph([node(op, ["x"], ["z"])], "b", [], [value("z")])
             for name, op in (("then_branch", "ImageDecoder"), ("else_branch", "Affine"))})],
                            [value("x"), value("c", (), TensorProto.BOOL)], opset=20)),
         ("2 things", "ImageDecoder of ai.onnx", "Affine of ai.onnx", "then_branch"),
         kind="Unsupported"),
    Case("op of a domain of onnxruntime",
         inspect(make_model([node("LongformerAttention", domain="com.microsoft", name="n")],
                            opsets={"": 17, "com.microsoft": 1})),
         ("LongformerAttention of com.microsoft is not in this build",), kind="Unsupported"),
    Case("op of an unknown domain, not imported",
         inspect(make_model([node("Own", domain="com.example", name="n")])),
         ("node 'n' (Own)", "'com.example'", "ai.onnx 17", "opset_import")),
    Case("op younger than its operator set",
         inspect(make_model([node("Gelu", name="n")], opset=17)),
         ("node 'n' (Gelu)", "17", "20"), kind="Unsupported"),
    Case("graphs nested too deeply", inspect(nested_ifs(128)), ("128",)),
    Case("graphs nested very deeply", inspect(nested_ifs(1000)), ("128",)),
    Case("unknown attribute", inspect(make_model([node("Relu", name="n", alpha=1.0)])),
         ("node 'n' (Relu)", "alpha")),
    Case("attribute of the wrong kind", inspect(make_model([node("Softmax", name="n", axis=1.5)])),
         ("node 'n' (Softmax)", "axis", "int", "float")),
    Case("too many inputs", inspect(make_model([node("Relu", "x x", name="n")])),
         ("node 'n' (Relu)", "at most 1")),
    Case("missing required input", inspect(make_model([node("Add", name="n")])),
         ("node 'n' (Add)", "'B'")),
    Case("unnamed node is called after its output",
         inspect(make_model([node("Add")])), ("node 'y' (Add)",)),
    # --- edges ---
    Case("cycle", inspect(make_model([node("Add", "x b", "a", name="first"),
                                      node("Relu", "a", "b", name="second"),
                                      node("Relu", "b", name="third")])),
         ("cycle", "first", "second")),
    Case("input that does not exist", inspect(make_model([node("Add", "x nowhere", name="n")])),
         ("node 'n' (Add)", "nowhere")),
    Case("output that does not exist", inspect(make_model([node("Relu", "x", "z")])), ("'y'",)),
    Case("value made twice", inspect(make_model([node("Relu", name="n"), node("Relu", name="m")])),
         ("'y'", "twice")),
    Case("node output shadows an input",
         inspect(make_model([node("Relu", "x", "x", name="n"), node("Relu")])), ("'x'",)),
    Case("two inputs of one name", inspect(relu_model(inputs=[value("x"), value("x")])), ("'x'",)),
    # --- sparse tensors ---
    Case("sparse index out of range", inspect(sparse_model([1, 8])),
         ("sparse initializer 's'", "0 to 7", "found 8", "stored element 1")),
    Case("sparse index below zero", inspect(sparse_model([-1, 3])),
         ("sparse initializer 's'", "found -1")),
    Case("sparse indices out of order", inspect(sparse_model([3, 1])),
         ("sparse initializer 's'", "ascending")),
    Case("sparse index twice", inspect(sparse_model([3, 3])),
         ("sparse initializer 's'", "repetition")),
    Case("sparse indices of another length", inspect(sparse_model([1, 2, 3])),
         ("sparse initializer 's'", "int64 2 or 2x2", "found int64 3")),
    Case("sparse tensor of too many rows", inspect(sparse_model([1, 3], (1 << 50, 2))),
         ("sparse initializer 's'", "in proportion to its 2 stored"), kind="Unsupported"),
    Case("sparse tensor beyond 64 bits", inspect(sparse_model([1, 3], (1 << 40, 1 << 40))),
         ("sparse initializer 's'", "64 bits")),
    Case("layout of no input", bound_with("z=csr"), ("layout of 'z'", "'x'"),
         kind="InvalidArgument"),
    Case("unknown layout", bound_with("x=coo"), ("layout of 'x'", "'csr'", "'coo'"),
         kind="InvalidArgument"),
    Case("capacity that is no number", bound_with("x=csr:-1"), ("layout of 'x'", "csr:-1"),
         kind="InvalidArgument"),
    Case("capacity beyond all elements", bound_with("x=csr:3"), ("0 to 2", "found 3"),
         kind="InvalidArgument"),
    Case("layout given twice", bound_with("x=csr", "x=csr"), ("two",), kind="InvalidArgument"),
    Case("strict storage without a sparse kernel",
         bound_with("x=csr:2", op="Exp", more=["--strict-storage"]),
         ("node 'n' (Exp)", "'x' (csr:2)", "no backend"), kind="Unsupported"),
    Case("output that exceeds its capacity", bound_with("y=csr:1", op="Exp"),
         ("value 'y'", "at most 1", "csr:1", "found 2", "csr:2"), kind="InvalidArgument"),
    # --- types and shapes ---
    Case("two element types",
         inspect(make_model([node("Add", "x z", name="n")],
                            [value("x"), value("z", element=TensorProto.INT64)])),
         ("node 'n' (Add)", "float32", "int64")),
    Case("element type that the op does not take",
         inspect(make_model([node("Relu", name="n")], [value("x", element=TensorProto.BOOL)])),
         ("node 'n' (Relu)", "bool")),
    Case("declared element type contradicts",
         inspect(make_model([node("Relu", name="n")],
                            outputs=[value("y", element=TensorProto.INT64)])),
         ("y", "float32", "int64")),
    Case("shapes that do not fit",
         inspect(make_model([node("Add", "x z", name="n")],
                            [value("x", (2, 3)), value("z", (2, 4))])),
         ("node 'n' (Add)", "2x3", "2x4")),
    Case("input shape contradicts the weights", inspect(conv_model(input_shape=(1, 5, 8, 8))),
         ("node 'conv1' (Conv)", "5", "3")),
    Case("kernel larger than its input", inspect(conv_model((4, 3, 10, 10))),
         ("node 'conv1' (Conv)",)),
    Case("stride zero", inspect(conv_model(strides=[0, 1])), ("node 'conv1' (Conv)", "strides")),
    Case("negative group", inspect(conv_model(group=-1)), ("node 'conv1' (Conv)", "group")),
    Case("declared inner shape, strictly",
         lambda folder: inspect(make_model(
             [node("Relu", "x", "h", name="n"), node("Relu", "h")],
             value_info=[value("h", (3, 3))]))(folder) + ["--strict"], ("h", "3x3", "1x2")),
    Case("shape that exceeds 64 bits",
         inspect(make_model([node("Concat", "x x", name="n", axis=0)],
                            [value("x", (2**62, 2**62))])), ("64 bits",)),
    Case("more memory than there is",
         run(relu_model(inputs=[value("x", (2**20, 2**25))], outputs=[value("y", (2**20, 2**25))]),
             "--random", "1"), (), exit_code=3, kind="OutOfMemory"),
    Case("inner values need more memory than there is",
         run(make_model([node("Expand", "x s", "h", name="n"), node("ReduceSum", "h")],
                        weights=[numpy_helper.from_array(np.array([2**22, 2**22]), "s")],
                        inputs=[value("x", (1, 1))], outputs=[value("y", (1, 1))]), "--random",
             "1"), (), exit_code=3, kind="OutOfMemory"),
    # --- weights ---
    Case("weight bytes do not match its shape",
         inspect(make_model([node("Add", "x w")], weights=[
             TensorProto(name="w", data_type=FLOAT, dims=[1, 2], raw_data=bytes(4))])), ("'w'",)),
    Case("negative dimension of a weight",
         inspect(make_model([node("Add", "x w")], weights=[
             TensorProto(name="w", data_type=FLOAT, dims=[-1, 2], raw_data=bytes(8))])), ("'w'",)),
    Case("weight that exceeds 64 bits",
         inspect(make_model([node("Add", "x w")], weights=[
             TensorProto(name="w", data_type=FLOAT, dims=[2**40, 2**40])])), ("'w'",)),
    Case("unknown element type of a weight",
         inspect(make_model([node("Add", "x w")], weights=[
             TensorProto(name="w", data_type=99, dims=[1], raw_data=bytes(4))])), ("'w'", "99"),
         kind="Unsupported"),
    Case("external data missing", external("w.bin"), ("'w'", "w.bin")),
    Case("external data too short", external("w.bin", write_short), ("'w'", "w.bin", "4", "8")),
    Case("external data beyond the end", external("w.bin", write_short, offset=100), ("'w'",)),
    Case("external length contradicts the shape",
         external("w.bin", lambda f: (f / "inner" / "w.bin").write_bytes(bytes(64)), length=4),
         ("'w'",)),
    Case("external path is absolute", external(lambda f: f / "outside.bin", write_outside),
         ("'w'", "outside.bin")),
    Case("external path leads upwards", external("../outside.bin", write_outside), ("'w'", "..")),
    Case("external path is a link that leaves", external("link.bin", link_outside), ("'w'",)),
    Case("external path goes through a folder that leaves",
         external("linked/w.bin", link_folder_outside), ("'w'",)),
    Case("external path is a folder",
         external("w.bin", lambda f: (f / "inner" / "w.bin").mkdir()), ("'w'",)),
    # --- functions ---
    Case("function that calls itself",
         inspect(function_model([function("f", [call("f", ["a"], ["b"])])],
                                [call("f", ["x"], ["y"])])), ("calls itself", "'f' -> 'f'")),
    Case("functions that call each other",
         inspect(function_model([function("f", [call("g", ["a"], ["b"])]),
                                 function("g", [call("f", ["a"], ["b"])])],
                                [call("f", ["x"], ["y"])])), ("calls itself", "'f' -> 'g' -> 'f'")),
    # --- requests ---
    Case("unknown input name", run(relu_model(), arrays={"z": np.zeros((1, 2), np.float32)}),
         ("'z'", "'x'"), kind="InvalidArgument"),
    Case("missing input", run(relu_model()), ("'x'", "float32 1x2"), kind="InvalidArgument"),
    Case("input of the wrong type", run(relu_model(), arrays={"x": np.zeros((1, 2), np.int64)}),
         ("'x'", "float32 1x2", "int64 1x2"), kind="InvalidArgument"),
    Case("input of the wrong rank", run(relu_model(), arrays={"x": np.zeros(2, np.float32)}),
         ("'x'", "1x2", "2"), kind="InvalidArgument"),
    Case("input of the wrong size", run(relu_model(), arrays={"x": np.zeros((1, 3), np.float32)}),
         ("'x'", "1x2", "1x3"), kind="InvalidArgument"),
    Case("unknown dimension", run(relu_model(inputs=[value("x", ("batch", 2))],
                                             outputs=[value("y", ("batch", 2))]), "--random", "1"),
         ("'x'", "batch", "--shape"), kind="InvalidArgument"),
    Case("one symbol, two numbers",
         run(make_model([node("Add", "x z")],
                        [value("x", ("n",)), value("z", ("n",))], [value("y", ("n",))]),
             arrays={"x": np.zeros(2, np.float32), "z": np.zeros(3, np.float32)}),
         ("'n'", "'x'", "'z'"), kind="InvalidArgument"),
    Case("shape of unknown input", run(relu_model(), "--shape", "z=1x2", "--random", "1"),
         ("'z'", "'x'"), kind="InvalidArgument"),
    Case("input that is no file", run(relu_model(), "--input", "x=nowhere.npy"), ("nowhere.npy",),
         kind="InvalidArgument"),
    Case("input that is no array",
         lambda f: [*run(relu_model())(f), "--input", f"x={f / 'model.onnx'}"], ("model.onnx",),
         kind="InvalidArgument"),
]
