"""Every attribute and every optional input of every op in every version, set to values that change
the result (tests/attribute_rows): each backend gives the result of the reference, and the reference
that of ONNX Runtime or onnx.reference. An attribute without a row fails.

A backend may refuse a node, but not ignore an attribute that it does not know. Without --long,
those that compile a kernel for each node get only the newest version, and one value of each
attribute."""

import collections
import warnings

import numpy as np
import onnx
import pytest
from onnx import helper

from attribute_rows import NAMES_BEFORE, Inexpressible, node_of, rows_by_op, settings_of
from programs import json_of
from small_models import node

# Attributes that decide only types or nothing, or whose ops no plug-in computes.
_WINDOW = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
_SCALES = ("axis", "block_size", "output_dtype", "precision", "saturate")
WITHOUT_ROW = {
    **{(op, name): "strings and words, which the host runs: the tests of src/ops/strings"
       for op, names in (("RegexFullMatch", ("pattern",)),
                         ("StringNormalizer", ("case_change_action", "is_case_sensitive", "locale", "stopwords")),
                         ("StringSplit", ("delimiter", "maxsplit")),
                         ("TfIdfVectorizer", ("max_gram_length", "max_skip_count", "min_gram_length", "mode",
                                              "ngram_counts", "ngram_indexes", "pool_int64s",
                                              "pool_strings", "weights")))
       for name in names},
    **{(op, name): "integers, which the reference alone computes: the tests of src/ops/quantize"
       for op, names in (("ConvInteger", (*_WINDOW, "x_zero_point", "w_zero_point")),
                         ("QLinearConv", (*_WINDOW, "B")),
                         ("MatMulInteger", ("a_zero_point", "b_zero_point")),
                         ("QuantizeLinear", (*_SCALES, "y_zero_point")),
                         ("DequantizeLinear", (*_SCALES, "x_zero_point")))
       for name in names},
    **{(op, name): "a nested graph or its ports, which the host runs: "
                  "the tests of src/ops/control_flow"
       for op, names in (("If", ("then_branch", "else_branch")), ("Loop", ("body", "M", "cond")),
                         ("SequenceMap", ("body",)),
                         ("Scan", ("body", "sequence_lens", "directions", "num_scan_inputs", "scan_input_axes",
                                   "scan_output_axes", "scan_input_directions",
                                   "scan_output_directions")))
       for name in names},
    **{(op, name): "sequences, which the reference alone computes: "
                  "src/ops/control_flow/sequence_test.cc"
       for op, names in (("ConcatFromSequence", ("axis", "new_axis")),
                         ("SplitToSequence", ("axis", "keepdims", "split")),
                         ("SequenceEmpty", ("dtype",)), ("SequenceErase", ("position",)),
                         ("SequenceInsert", ("position",)), ("Optional", ("type", "input")),
                         ("OptionalHasElement", ("input",)))
       for name in names},
    **{(op, name): "random numbers, which no two programs draw alike: the tests of src/ops/random"
       for op, names in (("Bernoulli", ("dtype", "seed")),
                         ("Multinomial", ("dtype", "sample_size", "seed")),
                         ("RandomNormal", ("dtype", "mean", "scale", "seed", "shape")),
                         ("RandomNormalLike", ("dtype", "mean", "scale", "seed")),
                         ("RandomUniform", ("dtype", "high", "low", "seed", "shape")),
                         ("RandomUniformLike", ("dtype", "high", "low", "seed")))
       for name in names},
    **{(op, "output_sequence"): "removed by version 7; said whether the sequence is returned"
       for op in ("RNN", "GRU", "LSTM")},
    ("Attention", "softmax_precision"): "how far the softmax is rounded: "
                                        "src/ops/attention/attention_test.cc",
    **{("Constant", name): "no element type or layout that kernels know"
       for name in ("value_string", "value_strings", "sparse_value")},
    **{(op, name): "of the small floats, which the reference alone computes: "
                  "tests/models/small_types_test.py"
       for op in ("Cast", "CastLike") for name in ("saturate", "round_mode")},
}
# Cases in which every judge that supports them differs from the reference, and the sentence of the
# standard. onnx.reference is then the only one.
RULINGS = {
    **{(op, "layout"): "sequence_lens: Optional tensor specifying lengths of the sequences in a batch."
       for op in ("RNN", "GRU", "LSTM")},
    ("MaxUnpool", "output_shape"): "In ONNX's example, test_maxunpool_export_with_output_shape, "
                                   "indices are those of the tensor without what it adds.",
    ("LRN", "size"): "max(0, c - floor((size - 1) / 2)) <= i <= min(C - 1, c + ceil((size - 1) / 2))",
}

BACKENDS = ("native", "onednn")
COMPILING = ("jit", "opencl", "openvino")
GROUPS_ONLY = ("jit",)  # which compile no single node
MOST_VALUES = 1
ROWS = rows_by_op()


def versions_of(op):
    """Schemas by version, of operator set 6 and later."""
    found = {}
    for opset in range(6, onnx.defs.onnx_opset_version() + 1):
        try:
            schema = onnx.defs.get_schema(op, opset, "")
        except onnx.defs.SchemaError:
            continue
        if not schema.deprecated:
            found[schema.since_version] = schema
    return found


def make_model(row, schema, settings):
    """The model's bytes, and what to feed. All inputs but the first are constants."""
    node, arrays = node_of(row, schema, settings)
    tensors = [onnx.numpy_helper.from_array(array, f"i{index}")
               for index, array in enumerate(arrays) if array is not None]
    fed = [helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
           for tensor in tensors[:1]]
    graph = helper.make_graph([node], "attributes", fed,
                              [onnx.ValueInfoProto(name=name) for name in node.output],
                              tensors[1:])
    model = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", max(schema.since_version, 6))])
    return model.SerializeToString(), {tensor.name: arrays[0] for tensor in tensors[:1]}


def negated(model):
    """The model with a Neg behind its first output."""
    changed = onnx.load_model_from_string(model)
    graph = changed.graph
    graph.node.append(node("Neg", "o0", "negated", "target_behind"))
    graph.output[0].name = "negated"
    return changed.SerializeToString()


# --- Those who compute ---------------------------------------------------------------------------


class Failed(Exception):
    pass


def run_onnxruntime(model, fed):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, fed)


def run_reference(model, fed):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(onnx.load_model_from_string(model)).run(None, fed)


def judged(judge, model, fed):
    """None if it does not support the model."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return [np.asarray(output) for output in judge(model, fed)]
    except Exception:
        return None


def difference(found, expected):
    """"" if the results are equal up to rounding."""
    if len(found) != len(expected):
        return f"{len(found)} outputs instead of {len(expected)}"
    for index, (one, other) in enumerate(zip(found, expected)):
        if one.shape != other.shape or one.dtype != other.dtype:
            return (f"output {index}: {one.dtype}{list(one.shape)} instead of "
                    f"{other.dtype}{list(other.shape)}")
        a, b = one.astype(np.float64), other.astype(np.float64)
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=1e-3)
        exact = one.dtype.kind in "iub"
        near = np.isclose(a, b, rtol=0 if exact else 1e-4, atol=0 if exact else 1e-5 * scale,
                          equal_nan=True)
        if not near.all():
            at = tuple(int(i) for i in np.argwhere(np.atleast_1d(~near))[0])
            return (f"output {index}: {int((~near).sum())} of {near.size} elements differ, at "
                    f"{list(at)} expected {np.atleast_1d(b)[at]}, found {np.atleast_1d(a)[at]}")
    return ""


class Trial:
    """All cases of one op. `backends`: all that compute; `compiling`: those among them that get few
    cases."""

    def __init__(self, tessera, op, backends, compiling):
        self.tessera = tessera
        self.op = op
        self.backends = backends
        self.compiling = compiling
        self.failures = []
        self.covered = set()  # (version, attribute)
        self.taken = collections.Counter()  # by backend: cases that it computed

    def run(self, model, fed, backend):
        """None if the backend refuses the node."""
        pins = [] if backend == "reference" else [self.tessera.Pin("target*", backend)]
        is_group = backend in GROUPS_ONLY
        try:
            # Not every type can be negated.
            loaded = self.tessera.load(negated(model) if is_group else model)
            executor = loaded.bind(backends=[backend], pins=pins, threads=1, optimize=False)
        except self.tessera.Error:
            if not pins:
                raise
            return None
        self.taken[backend] += 1
        outputs = [np.asarray(output) for output in executor.run(fed)]
        return [-outputs[0], *outputs[1:]] if is_group else outputs

    def reference(self, model, fed):
        try:
            return self.run(model, fed, "reference")
        except self.tessera.Error as error:
            raise Failed(str(error)) from error

    def fail(self, name, text):
        self.failures.append(f"{name}: {text}")

    def check(self, name, model, fed, backends, is_newest):
        """The reference's result, after the backends were compared with it."""
        expected = self.reference(model, fed)
        for backend in backends:
            try:
                found = self.run(model, fed, backend)
                text = "" if found is None else difference(found, expected)
            except self.tessera.Error as error:
                text = str(error)
            if text:
                self.fail(name, f"{backend} differs from the reference: {text}")
        self.judge(name, model, fed, expected, is_newest)
        return expected

    def judge(self, name, model, fed, expected, is_newest):
        # onnx.reference treats most older versions as the newest.
        judges = (run_onnxruntime, run_reference) if is_newest else (run_onnxruntime,)
        answers = {judge.__name__.removeprefix("run_"): judged(judge, model, fed)
                   for judge in judges}
        texts = {judge: difference(expected, answer) for judge, answer in answers.items()
                 if answer is not None}
        if texts and all(texts.values()) and (self.op, name.split()[1]) not in RULINGS:
            self.fail(name, "the reference differs from every judge: " + "; ".join(
                f"{judge}: {text}" for judge, text in texts.items()))

    def try_row(self, row, schema, is_newest):
        version = schema.since_version
        for changes, table in ((True, row.vary), (False, row.same)):
            for subject, values in table.items():
                results = []
                for number, value in enumerate(values):
                    is_few = is_newest and number < MOST_VALUES
                    backends = [one for one in self.backends
                                if is_few or one not in self.compiling]
                    settings = settings_of(subject, value)
                    name = f"{row.op}-{version} {subject} " + ", ".join(
                        f"{key}={short(one)}" for key, one in settings.items())
                    try:
                        results += self.try_setting(row, schema, subject, settings, name, changes,
                                                    backends, is_newest)
                    except Failed as failed:
                        self.fail(name, str(failed))
                if len(results) > 1 and changes and not any(
                        difference(one, results[0]) for one in results[1:]):
                    self.fail(f"{row.op}-{version} {subject}", "all values give the same result")

    def try_setting(self, row, schema, subject, settings, name, changes, backends,
                    is_newest):
        """The result in a list, if there is none without the subject to compare it with."""
        try:
            model, fed = make_model(row, schema, settings)
        except Inexpressible:
            return []
        found = self.check(name, model, fed, backends, is_newest)
        self.covered.add((schema.since_version, subject))
        self.covered.add((schema.since_version, NAMES_BEFORE.get(subject)))
        if subject in row.inputs or subject in row.attributes:
            return [found]
        rest = {key: value for key, value in settings.items() if key != subject}
        try:
            without = self.reference(*make_model(row, schema, rest))
        except Failed:
            return [found]  # it is required, or its default does not fit these inputs
        is_equal = not difference(found, without)
        if changes == is_equal:
            self.fail(name, "gives the same result as without it" if is_equal else
                      "changes the result, which it must not")
        return []


def short(value):
    return str(value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value)[:40]


# --- The tests -----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def usable(tessera):
    return [one.name for one in tessera.backends()
            if one.is_usable and one.name in BACKENDS + COMPILING]


@pytest.mark.parametrize("op", sorted(ROWS))
def test_each_value_means_the_same_everywhere(tessera, usable, is_long, op):
    trial = Trial(tessera, op, usable, () if is_long else COMPILING)
    versions = versions_of(op)
    for version, schema in versions.items():
        for row in ROWS[op]:
            if version in row.versions:
                trial.try_row(row, schema, version == max(versions))
    missing = [f"{op}-{version}: no row sets '{name}'"
               for version, schema in versions.items() for name in settable(schema)
               if (version, name) not in trial.covered and (op, name) not in WITHOUT_ROW]
    assert not trial.failures and not missing, "\n".join([*trial.failures, *missing])


def settable(schema):
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    return [*schema.attributes, *(one.name for one in schema.inputs if one.option == optional)]


def test_each_op_with_attributes_has_rows(bin_dir):
    known = [op["name"] for op in json_of(bin_dir / "print_op_table")
             if not op["domain"]]
    missing = [f"{op}-{version}: no row sets '{name}'" for op in known if op not in ROWS
               for version, schema in versions_of(op).items() for name in settable(schema)
               if (op, name) not in WITHOUT_ROW]
    assert known and not missing, "\n".join(missing)
