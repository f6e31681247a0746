"""Decides whether the result of a run of Tessera is right, given the results of ONNX Runtime and
onnx.reference.

Right are the judges' result, and an error that blames the model or the caller and names a location
in the model. If the judges disagree, either result is right, unless RULINGS decides."""

import dataclasses
import re

import numpy as np

from fuzz_case import BFLOAT16

REFUSALS = ("InvalidModel", "InvalidArgument", "Unsupported", "OutOfMemory")
# Ops with random results.
RANDOM_OPS = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike",
              "RandomUniform", "RandomUniformLike"}
TOLERANCES = {np.dtype(np.float16): 2e-2, BFLOAT16: 8e-2, np.dtype(np.float32): 1e-3,
              np.dtype(np.float64): 1e-6}
# For cases in which the judges are wrong, or neither follows the standard: op, kind of problem,
# regular expression for name and text of the problem, and the sentence of the standard that
# decides, or Tessera's own limit.
RULINGS = (
    ("DFT|STFT", "differs", "with [^,]*(inf|nan).*(expected|found) nan", "X[k] = sum of x[n] e^(-2 pi i k n / "
     "N): terms with an imaginary part of 0 may be left out, and others may be added in any order."),
    ("QLinearConv|ConvInteger", "refuses", "expected a kernel of 1 to", "A kernel has at least one element "
     "along each axis: Tessera's limit."),
    ("Attention", "differs", "largest.*expected nan", "softmax(Q K^T scale) V: scores beyond float32 are "
     "finite in the reference kernel, which computes them in float64."),
    ("Pad", "refuses", "expected mode", "Supported modes: `constant`(default), `reflect`, `edge`; since "
     "version 19 also `wrap`."),
    ("GatherND", "refuses", "batch_dims", "b < min(q, r) is to be honored."),
    ("Pow", "differs", "2147483648|9223372036854775808", "Casting from floating point to fixed point: "
     "undefined if OOR."),
    ("Global.*Pool", "differs", "expected shape|beside .*(Shape|Size)", "The output tensor has the same rank as the input."),
    ("Resize|Upsample", "refuses", "expected .* to be one of", "Four modes: 'round_prefer_floor' "
     "(default, as known as round half down), 'round_prefer_ceil' (as known as round half up), 'floor', "
     "'ceil'."),
    ("NegativeLogLikelihoodLoss|SoftmaxCrossEntropyLoss", "refuses", "'weights?': expected shape",
     "If given, it has to be a tensor of size C."),
    ("NegativeLogLikelihoodLoss|SoftmaxCrossEntropyLoss", "refuses", "'reduction': expected",
     "Type of reduction to apply to loss: none, sum, mean (default)."),
    ("Split", "refuses", "num_outputs", "Number of outputs to split parts of the tensor into."),
    (".*", "refuses", "expected an axis in", "Accepted range is [-r, r-1] where r = rank(input)."),
    ("ConstantOfShape", "refuses", "expected one dimension", "1D tensor. The shape of the expected "
     "output tensor."),
    ("Compress", "refuses", "expected one dimension, found shape scalar", "condition: Rank 1 tensor of "
     "booleans."),
    ("ScatterElements", "differs", "reduction.*with [^,]*nan.*found nan", "reduction: min, max; as in Min and "
     "Max, what is compared with NaN is NaN."),
    ("Compress", "refuses", "at most . elements", "Its length can be less than the input length along "
     "the axis or the flattened input size if axis is not specified."),
    ("ReduceMean", "differs", "[0-9]{16}", "Computes the mean of the input tensor's elements along the "
     "provided axes."),
    ("Reduce.*|ArgM.*", "differs|refuses", "keepdims = ", "Keep the reduced dimension or not, default 1 "
     "means keep reduced dimension."),
    ("Constant", "refuses", "exactly one", "Exactly one of the provided attributes must be specified."),
    ("Scatter.*", "refuses", "reduction", "Type of reduction to apply: none (default), add, mul, max, "
     "min."),
    ("Conv.*|.*Pool", "refuses", "expected . numbers, found 0", "If not present, the dilation defaults "
     "to 1 along each spatial axis."),
    ("MaxPool", "differs", "found nan|with [^,]*nan.*output 1: ", "Max pooling consisting of computing the max on all values of a "
     "subset of the input tensor"),
    ("OneHot", "differs", "expected nan", "All locations represented by the index values in the "
     "'indices' input tensor will have 'on_value' and the other locations will have 'off_value'"),
    ("PRelu", "refuses", "slope", "This operator supports unidirectional broadcasting (tensor slope "
     "should be unidirectional broadcastable to input tensor X)"),
    ("GroupNormalization", "refuses", "scale|bias", "scale: Scale tensor of shape (C)."),
    ("Split", "refuses", "found neither", "Either input 'split' or the attribute 'num_outputs' should "
     "be specified, but not both."),
    (".*", "refuses", "input '[^']*': (expected|the model declares) [a-z0-9]* scalar, ", "An empty list of dimension sizes "
     "is valid: it is a scalar."),
    ("LRN", "differs", "expected nan|expected -?inf", "square_sum[n, c, d1, ..., dk] = sum(X[n, i, d1, ..., dk] ^ 2), where "
     "max(0, c - floor((size - 1) / 2)) <= i <= min(C - 1, c + ceil((size - 1) / 2))."),
    ("Conv.*|.*Pool", "refuses", "to 2147483647, found", "A limit: strides, dilations and pads have 31 "
     "bits."),
    ("ReduceSumSquare", "differs", "from reference: output 0: expected u?int64, found u?int32", "Defines behavior when axes is not "
     "provided or is empty. If false (default), reduction happens over all axes [...] If true, reduction "
     "happens over an empty set of axes"),
    ("Resize", "refuses", "sizes of at least 0", "Target size of the output tensor."),
    ("Shrink", "differs", "bias = nan .*expected -(2147483648|9223372036854775808), found 0", "A result "
     "that is no number has no whole number; ONNX leaves the conversion open (Cast says so)."),
    ("ReduceL2", "differs", r"expected inf, found \d\.\d*e\+(19|2\d|3\d)", "Computes the L2 norm of the input "
     "tensor's elements along the provided axes: its squares may leave the type, the norm does not."),
    ("ReduceL2|Shrink", "differs", "18446744073709551615|4294967295|expected (0|-2147483648), found (127|255|32767|65535|2147483647)",
     "Casting from floating point to fixed point: undefined if OOR."),
    ("Resize", "refuses", "expected a coordinate_transformation_mode of version", "half_pixel_symmetric is "
     "of version 19 on."),
    ("Resize", "refuses", "axes = \\[\\].*expected 0 elements", "The number of elements of 'sizes' should be "
     "the same as the rank of input 'X', or the length of 'axes', if provided."),
    ("Conv.*|.*Pool", "refuses", "attribute '(pads|strides|dilations|kernel_shape)': expected . numbers, found",
     "pads format should be as follow [x1_begin, x2_begin...x1_end, x2_end,...]; stride along each spatial "
     "axis."),
    ("Gelu", "refuses", "approximate", "`approximate=tanh`, `approximate=none`"),
    ("Reshape", "differs", r"allowzero = (-|[2-9]|1\d)", "allowzero=1 indicates that if any value in the 'shape' "
     "input is set to zero, the zero value is honored, similar to NumPy."),
    ("InstanceNormalization", "differs", "beside .*(Shape|Size)", "scale: The input 1-dimensional scale "
     "tensor of size C."),
    ("PRelu", "differs", "beside .*(Shape|Size)", "This operator supports unidirectional broadcasting "
     "(tensor slope should be unidirectional broadcastable to input tensor X)"),
    ("GRU|LSTM|RNN|Reciprocal|Div|Pow|Exp", "differs", "clip = 1e-30|NonZero.*expected shape", "Elements may "
     "be zero that are not with another rounding, or where denormals are flushed."),
    ("GRU", "differs", r"expected (0\.0|\d\.\d+e-0[6-9]), found \d\.\d+e-(0[6-9]|1\d)", "What is left of 1 - z where z is "
     "nearly 1 differs by a rounding of z."),
    ("ConstantOfShape|Expand|Tile|Range", "hang", "=2147483648", "A limit of these tests: gigabytes take longer "
     "than a run may, under sanitizers."),
    ("ScatterND", "refuses", "tuples of 1 to", "A limit: a tuple without indices would select all data."),
    ("Expand", "refuses", "expected a list of integers", "A 1-D tensor indicates the shape you want to expand "
     "to"),
    ("LSTM|GRU|RNN", "differs", "HardSigmoid.*with .*(nan|inf).*found nan", "A limit of the judge: some activations of "
     "not a number are numbers there."),
    ("LSTM|GRU|RNN", "differs", "^(?!.*from reference).*with .*(nan|inf).*found nan", "A limit of ONNX Runtime, the only judge "
     "where onnx.reference does not read an attribute: its activations of not a number are numbers."),
    ("Squeeze|Pad", "refuses", "each axis once", "Behavior is undefined if an axis is repeated."),
    ("Elu", "differs", "alpha = (nan|-?inf)", "f(x) = alpha * (exp(x) - 1.) for x < 0, f(x) = x for x >= 0"),
    ("LeakyRelu", "differs", "alpha = (nan|-?inf)", "f(x) = alpha * x for x < 0, f(x) = x for x >= 0"),
    ("Resize", "differs", r"cubic_coeff_a = -?1e\+?30", "Sums overflow in one order and not in another."),
    (".*Pool", "differs", "auto_pad=SAME.* dilations=|dilations=.* auto_pad=SAME",
     "pad_shape[i] = (output_spatial_shape[i] - 1) * strides[i] + ((kernel_spatial_shape[i] - 1) * "
     "dilations[i] + 1) - input_spatial_shape[i]"),
    ("LogSoftmax|Softmax", "differs", r"oftmax-(1|11) .*with nan.*found nan", "The input does not need to "
     "explicitly be a 2D vector; rather, it will be coerced into one."),
    ("(Group|Layer)Normalization", "differs", r"as float64.*expected (-?\d+\.\d{4})\d*, found \1\d*", "stash_type: the "
     "floating-point precision used in stage one of the computation."),
    ("LayerNormalization", "differs", "output [12]: expected float(16|64), found float32", "Type of Mean and "
     "InvStdDev tensors: tensor(float), tensor(bfloat16)."),
    ("AveragePool", "differs", "with [^,]*nan.*found nan", "Average pooling consisting of computing the average on all "
     "values of a subset of the input tensor"),
    ("Gemm", "refuses", "expected a matrix", "Input tensor A. The shape of A should be (M, K) if transA is 0, or (K, M) "
     "if transA is non-zero."),
    ("Resize", "refuses", "expected either scales or sizes, found both", "One and only one of 'scales' and 'sizes' can be "
     "specified."),
    ("Gemm|MatMul|Conv.*", "differs", r"with [^,]*inf.*beside (Relu|Clip).*expected 0\.0, found nan", "A limit: behind a "
     "product, where an infinity is mostly an overflow, Relu may make NaN of it (docs/decisions/0031)."),
    ("Range", "differs", "inf", "number_of_elements = max( ceil( (limit - start) / delta ) , 0 )"),
)


@dataclasses.dataclass
class Problem:
    kind: str
    message: str


def names_of(model):
    return [name for node in model.graph.node for name in (node.name, *node.output) if name] + [
        value.name for value in (*model.graph.input, *model.graph.output)]


def explain_difference(found, expected):
    """"" if the arrays agree in types, shapes and elements; elements that are not finite only need
    to stay so."""
    if found is None:
        return ""
    if found.dtype != expected.dtype:
        return f"expected {expected.dtype}, found {found.dtype}"
    if found.shape != expected.shape:
        return f"expected shape {expected.shape}, found {found.shape}"
    if found.dtype not in TOLERANCES:
        wrong = found != expected
    else:
        tolerance = TOLERANCES[found.dtype]
        a, b = found.astype(np.float64), expected.astype(np.float64)
        finite = np.isfinite(b)
        scale = np.max(np.abs(b[finite]), initial=0.0)
        largest = float(np.finfo(np.float32).max) if found.dtype == BFLOAT16 else float(
            np.finfo(found.dtype).max)
        with np.errstate(all="ignore"):
            close = np.abs(a - b) <= tolerance * np.minimum(np.maximum(np.abs(b), 1e-2 * scale),
                                                            largest) + np.finfo(np.float32).tiny
        wrong = np.where(finite, ~(np.isfinite(a) & close), np.isfinite(a))
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(np.atleast_1d(wrong))[0])
    element = lambda array: np.atleast_1d(array)[at]
    return (f"{int(wrong.sum())} of {wrong.size} elements differ, at {list(at)} expected "
            f"{element(expected)}, found {element(found)}")


def explain_outputs(found, expected):
    if len(found) != len(expected):
        return f"expected {len(expected)} outputs, found {len(found)}"
    for index, (one, other) in enumerate(zip(found, expected)):
        difference = explain_difference(one, other)
        if difference:
            return f"output {index}: {difference}"
    return ""


def find_problem(run, judged, names, is_newest=True):
    """Describes what is wrong with a run; None if nothing is. `judged`: {judge: RUN}; `names`: what
    an error may name; `is_newest`: whether the op has its newest version."""
    kind = run["kind"]
    if kind in ("crash", "hang", "exception", "Internal"):
        return Problem(kind, str(run.get("where", "")) + ": " + run["message"])
    answers = {judge: answer["arrays"] for judge, answer in judged.items()
               if "arrays" in answer and "error" not in answer}
    if kind in REFUSALS:
        text = run["where"] + ": " + run["message"]
        if kind != "OutOfMemory" and not any(name in text for name in names):
            return Problem("names nothing", f"{kind}: {text}")
        if len(answers) == 2 and kind in ("InvalidModel", "InvalidArgument"):
            return Problem("refuses", f"{text}; both judges have a result, "
                           f"{describe(answers['onnxruntime'])}, {describe(answers['reference'])}")
        return None
    if kind != "":
        return None if kind == "Cancelled" else Problem(kind, run["where"] + ": " + run["message"])
    if not answers:
        if any(NO_ANSWER in answer["error"] for answer in judged.values()):
            return None
        return Problem("accepts", f"gives {describe(run['arrays'])}; " + "; ".join(
            f"{judge}: {answer['error'][:160]}" for judge, answer in judged.items())) if judged else None
    differences = {judge: explain_outputs(run["arrays"], arrays) for judge, arrays in answers.items()}
    # Types and shapes are defined all the same.
    are_elements = all("elements differ" in text for text in differences.values() if text)
    if are_elements and any(UNDEFINED in answer.get("error", "") for answer in judged.values()):
        return None
    if all(differences.values()) and not is_disputed(judged, is_newest):
        return Problem("differs", "; ".join(
            f"from {judge}: {text}" for judge, text in differences.items()))
    return None


def explain_ruling(op, problem, what):
    """The sentence of RULINGS by which this is not a problem, or ""."""
    for ruled_op, kind, pattern, sentence in RULINGS:
        if re.fullmatch(ruled_op, op) and re.fullmatch(kind, problem.kind) and re.search(
                pattern, what + ": " + problem.message):
            return sentence
    return ""


# The answer of a judge that knows that it is no judge of a model.
NO_ANSWER = "NoAnswer"
# Of a judge that knows that the standard leaves a result open: "Casting from floating point to fixed
# point: undefined if OOR", in Cast and in every op that converts its result.
UNDEFINED = "Undefined"
# What says nothing about the case: ONNX Runtime's messages if it has no kernel or does not know the
# operator set, and a judge that gives no result.
NOT_THERE = re.compile("NOT_IMPLEMENTED|ValidateOpset|under development|not a registered|Type Error|"
                       f"INVALID_GRAPH|{NO_ANSWER}|{UNDEFINED}")


def is_disputed(judged, is_newest):
    """Whether one judge refuses a case for which the other has a result. onnx.reference treats most
    older versions as the newest, so for older versions only ONNX Runtime is a judge."""
    if not is_newest and "arrays" not in judged["onnxruntime"]:
        return True
    errors = [answer["error"] for answer in judged.values() if "error" in answer]
    return any(not NOT_THERE.search(error) for error in errors)


def describe(arrays):
    return " ".join("-" if array is None else f"{array.dtype}{list(array.shape)}" for array in arrays)
