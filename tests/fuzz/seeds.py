"""Valid uses of each op in each version, to be corrupted: the single-node cases that the onnx
package generates, and for older versions the same with inputs converted to the attributes that they
were before."""

import dataclasses
import warnings

import numpy as np
import onnx
from onnx import helper

from fuzz_case import BFLOAT16, Case, element_type, to_proto

# Larger cases take time and test nothing more.
MOST_ELEMENTS = 2000
# The attribute of an older version that became an input.
FORMER_NAMES = {"constant_value": "value", "K": "k"}
# The kinds (of NumPy) of element types that Tessera computes with.
KINDS = "fiub"


@dataclasses.dataclass
class Seed:
    op: str
    domain: str
    version: int
    name: str  # of the case
    node: onnx.NodeProto
    arrays: list  # for each input; None if it is omitted
    input_names: list  # the schema's names

    @property
    def label(self):
        return f"{self.op}-{self.version}"


def is_usable(array):
    return isinstance(array, np.ndarray) and array.size <= MOST_ELEMENTS and (
        array.dtype.kind in KINDS or array.dtype == BFLOAT16) and array.dtype.itemsize <= 8


def onnx_uses():
    """(name, operator set, node, arrays of the node's inputs) for every generated case of one node."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases(None)
    for case in cases:
        graph = case.model.graph
        if len(graph.node) != 1 or graph.initializer or not case.data_sets:
            continue
        [node] = graph.node
        fed = dict(zip([value.name for value in graph.input], case.data_sets[0][0]))
        arrays = [None if not name else np.asarray(fed.get(name)) if name in fed and
                  not isinstance(fed[name], (list, onnx.TensorProto)) and fed[name] is not None
                  else "none" for name in node.input]
        if all(array is None or is_usable(array) for array in arrays):
            opset = next(o.version for o in case.model.opset_import if o.domain == node.domain)
            yield case.name, opset, node, arrays


def more_uses():
    """Uses for which the package has no case: output sizes that are known although the axes are
    not."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    reductions = [f"Reduce{kind}" for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean",
                                               "Min", "Prod", "Sum", "SumSquare")]
    rows = [(op, {"keepdims": 0}, [x + 1, np.array([0, 1])]) for op in reductions]
    rows += [("Squeeze", {}, [x.reshape(1, 6, 1), np.array([0, 2])]),
             ("Unsqueeze", {}, [x, np.array([0, 3])]),
             ("Pad", {"mode": "constant"}, [x, np.array([1, 0, 0, 1]), np.float32(7)]),
             ("Reshape", {}, [x, np.array([3, 2])]),
             ("Reshape", {}, [x[:1, :1], np.zeros(0, np.int64)]),
             ("Expand", {}, [x, np.array([2, 2, 3])]),
             ("Tile", {}, [x, np.array([1, 2])]),
             ("OneHot", {}, [np.array([0, 2]), np.array(3), np.array([0, 1], np.float32)]),
             ("TopK", {}, [x, np.array([2])]),
             ("Gather", {}, [x, np.array(1)]),
             ("MatMul", {}, [x[0], x.T.copy()]),
             ("Gemm", {"transB": 1}, [x, x, np.array([1, 2], np.float32)]),
             ("Concat", {"axis": -1}, [x, x]),
             ("Where", {}, [x > 2, x, x[0]]),
             ("CumSum", {"reverse": 1}, [x, np.array(1)]),
             ("ArgMax", {"axis": 1, "keepdims": 0}, [x]),
             ("LayerNormalization", {"axis": -1}, [x, x[0], x[0]])]
    for op, attributes, arrays in rows:
        schema = onnx.defs.get_schema(op)
        node = helper.make_node(op, [f"i{index}" for index in range(len(arrays))],
                                [f"o{index}" for index in range(schema.min_output)], **attributes)
        yield "made", schema.since_version, node, [np.asarray(array) for array in arrays]


def versions_of(op, domain):
    """Schemas of an op, one for each of its versions in operator set 6 or later."""
    found = {}
    for opset in range(6, onnx.defs.onnx_opset_version() + 1):
        try:
            schema = onnx.defs.get_schema(op, opset, domain)
        except onnx.defs.SchemaError:
            continue
        found[schema.since_version] = schema
    return found


def input_names(schema, count):
    names = [parameter.name for parameter in schema.inputs]
    while names and len(names) < count:
        names.append(names[-1])
    return names


def make_attribute(name, array, kind):
    types = onnx.defs.OpSchema.AttrType
    if kind not in (types.INT, types.INTS, types.FLOAT, types.FLOATS) or not array.size:
        return None
    cast = int if kind in (types.INT, types.INTS) else float
    values = [cast(element) for element in array.reshape(-1)]
    return helper.make_attribute(
        name, values if kind in (types.INTS, types.FLOATS) else values[0])


def adapted(node, arrays, newest, schema):
    """The node and its arrays converted to an older version; None if that version cannot express
    it."""
    values = dict(zip(input_names(newest, len(arrays)), arrays))
    older = onnx.NodeProto()
    older.CopyFrom(node)
    del older.attribute[:]
    older.attribute.extend(a for a in node.attribute if a.name in schema.attributes)
    names = input_names(schema, 0)
    for name, array in values.items():
        attribute = name if name in schema.attributes else FORMER_NAMES.get(name)
        if name in names or array is None or attribute not in schema.attributes:
            continue
        kind = schema.attributes[attribute].type
        older_attribute = make_attribute(attribute, array, kind)
        if older_attribute is None:
            return None
        older.attribute.append(older_attribute)
    if any(name.required and name.name not in [a.name for a in older.attribute]
           for name in schema.attributes.values()):
        return None
    is_variadic = schema.inputs and (
        schema.inputs[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic)
    kept = list(arrays) if is_variadic else [values.get(name) for name in names]
    while kept and kept[-1] is None:
        kept.pop()
    if len(kept) < schema.min_input or any(array is None for array in kept[:schema.min_input]):
        return None
    return older, kept


def make_seed(case_name, node, arrays, schema):
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name = "target"
    del copy.input[:]
    copy.input.extend("" if array is None else f"i{index}" for index, array in enumerate(arrays))
    for index, output in enumerate(copy.output):
        copy.output[index] = f"o{index}" if output else ""
    return Seed(node.op_type, node.domain, schema.since_version, case_name, copy, list(arrays),
                input_names(schema, len(arrays)))


def shape_of(seed):
    """Distinguishes uses of an op: the inputs' types and ranks, and the attributes with their
    numbers and texts."""
    return (tuple(None if a is None else (a.dtype.str, a.ndim) for a in seed.arrays),
            tuple(sorted((a.name, a.i, a.s, len(a.ints)) for a in seed.node.attribute)))


def runs_on_values(op):
    """Whether an op takes or gives lists or optionals, or has nested graphs: nested_graphs.py draws
    models with these."""
    return op in ("If", "Loop", "Scan") or "Sequence" in op or op.startswith("Optional")


def collect_seeds(known_ops):
    """For each (domain, op, version), the smallest case of each shape_of(). `known_ops`: (domain,
    op)."""
    seeds = {}
    for case_name, opset, node, arrays in (*onnx_uses(), *more_uses()):
        if (node.domain, node.op_type) not in known_ops or runs_on_values(node.op_type):
            continue
        own = onnx.defs.get_schema(node.op_type, opset, node.domain)
        for version, schema in versions_of(node.op_type, node.domain).items():
            use = (node, arrays) if version == own.since_version else adapted(
                node, arrays, own, schema)
            if use is None:
                continue
            seed = make_seed(case_name, *use, schema)
            shapes = seeds.setdefault((node.domain, node.op_type, version), {})
            best = shapes.get(shape_of(seed))
            if best is None or size_of(seed) < size_of(best):
                shapes[shape_of(seed)] = seed
    return {key: list(shapes.values()) for key, shapes in sorted(seeds.items())}


def size_of(seed):
    """The sort key: small uses first, but those without elements last."""
    sizes = [array.size for array in seed.arrays if array is not None]
    return 0 in sizes, sum(sizes)


# How an input reaches its node. "constant": an initializer. "fed": a graph input. "rows": through a
# Compress, so that its first dimension is known only in a run; "columns": its second dimension.
# "dims": through a Reshape to a fed shape, so that all dimensions are known only in a run.
# "unknown": through a Reshape to a computed shape of unknown length, so that not even the rank is
# known before.
SUPPLIES = ("constant", "fed", "rows", "columns", "dims", "unknown")
COMPRESSED_AXES = {"rows": 0, "columns": 1}


class ModelBuilder:
    """Nodes around one or more nodes of interest."""

    def __init__(self, version, domain=""):
        self.opset = max(version, 6)
        self.domain = domain
        self.nodes = []
        self.inputs = []
        self.initializers = []

    def declare(self, name, array):
        dims = [f"{name}_{axis}" for axis in range(array.ndim)]
        self.inputs.append(helper.make_tensor_value_info(name, element_type(array), dims))

    def supply(self, name, array, supply):
        """Creates a value `name` that equals `array` in a run with the inputs of feeds_of()."""
        if supply == "constant":
            self.initializers.append(to_proto(array, name))
        elif supply == "fed":
            self.declare(name, array)
        elif supply in COMPRESSED_AXES:
            self.declare(f"{name}_all", array)
            self.declare(f"{name}_mask", np.ones(1, bool))
            self.nodes.append(helper.make_node(
                "Compress", [f"{name}_all", f"{name}_mask"], [name], name=f"{name}_compressed",
                axis=COMPRESSED_AXES[supply]))
        else:
            self.declare(f"{name}_flat", array.reshape(-1))
            shape = np.zeros(array.ndim, np.int64)
            self.inputs.append(helper.make_tensor_value_info(
                f"{name}_shape", element_type(shape),
                [array.ndim] if supply == "dims" else [f"{name}_rank"]))
            if supply == "unknown":
                self.declare(f"{name}_mask", np.ones(1, bool))
                self.nodes.append(helper.make_node(
                    "Compress", [f"{name}_shape", f"{name}_mask"], [f"{name}_dims"],
                    name=f"{name}_rank", axis=0))
            self.nodes.append(helper.make_node(
                "Reshape", [f"{name}_flat", f"{name}_{'shape' if supply == 'dims' else 'dims'}"],
                [name], name=f"{name}_reshaped",
                **({"allowzero": 1} if self.opset >= 14 else {})))

    def model(self, outputs):
        graph = helper.make_graph(
            self.nodes, "fuzz", self.inputs,
            [onnx.ValueInfoProto(name=name) for name in outputs], self.initializers)
        # The ops that supply inputs need operator set 9.
        opset = max(self.opset, 9) if any(
            node.op_type == "Compress" for node in self.nodes) else self.opset
        opsets = [helper.make_opsetid("", opset)]
        if self.domain:
            opsets.append(helper.make_opsetid(self.domain, self.opset))
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def feeds_of(name, array, supply):
    """The graph inputs with which the value `name` equals `array`."""
    if supply == "constant":
        return {}
    if supply == "fed":
        return {name: array}
    if supply in COMPRESSED_AXES:
        count = array.shape[COMPRESSED_AXES[supply]]
        return {f"{name}_all": array, f"{name}_mask": np.ones(count, bool)}
    feeds = {f"{name}_flat": array.reshape(-1), f"{name}_shape": np.array(array.shape, np.int64)}
    return feeds if supply == "dims" else {**feeds, f"{name}_mask": np.ones(array.ndim, bool)}


def case_of(seed, arrays_of_runs, supplies):
    """The seed's node on each of the runs' arrays, each input supplied as `supplies` says. A
    constant has the first run's value."""
    builder = ModelBuilder(seed.version, seed.domain)
    for index, array in enumerate(arrays_of_runs[0]):
        if array is not None:
            builder.supply(f"i{index}", array, supplies[index])
    builder.nodes.append(seed.node)
    runs = []
    for arrays in arrays_of_runs:
        runs.append({})
        for index, array in enumerate(arrays):
            if array is not None:
                runs[-1].update(feeds_of(f"i{index}", array, supplies[index]))
    return Case(builder.model([name for name in seed.node.output if name]), runs)


def can_supply(seed, array, supply):
    if supply in ("constant", "fed"):
        return True
    # The ops that supply inputs need operator set 9, in which the op may have another version.
    opset = max(seed.version, 9)
    if onnx.defs.get_schema(seed.op, opset, seed.domain).since_version != seed.version:
        return False
    if supply in COMPRESSED_AXES:
        return array.ndim > COMPRESSED_AXES[supply]
    # Without allowzero, a 0 in a Reshape copies the input's dimension, which exists here.
    return opset >= 14 or 0 not in array.shape[1:]
