"""Random uses of the ops of detectors and samplers give what ONNX Runtime and onnx.reference give,
in all versions, with known and open sizes, and in 16-bit types what they give in float32."""

import dataclasses
import warnings

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from small_models import model_of, node, tensor_type

HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


@dataclasses.dataclass
class Case:
    op: str
    opset: int
    inputs: list  # arrays; None for those that are left out
    attributes: dict = dataclasses.field(default_factory=dict)
    domain: str = ""
    # Who can be asked. onnx.reference knows the newest version only, and no other domain.
    judges: tuple = ("onnxruntime", "reference")
    # The inputs that may have a 16-bit type, and the first operator set in which all may.
    floating: tuple = ()
    halves_since: int = 22


def floats(random, *shape):
    return random.normal(0, 2, shape).astype(np.float32)


def some(random, probability, value):
    return value if random.random() < probability else None


def given(**attributes):
    return {name: value for name, value in attributes.items() if value is not None}


def sizes_of(random, count, most, least=1):
    return [int(size) for size in random.integers(least, most + 1, count)]


# --- Detection -----------------------------------------------------------------------------------


def suppressed(random):
    batches, classes, boxes = int(random.integers(1, 3)), int(random.integers(1, 4)), int(
        random.integers(0, 40))
    # Coarse numbers, so that scores are equal and overlaps meet the threshold.
    corners = random.integers(0, 16, (batches, boxes, 4)) / random.choice([4, 4, 3])
    scores = random.integers(-4, 12, (batches, classes, boxes)) / 10
    inputs = [corners.astype(np.float32), scores.astype(np.float32),
              np.array([random.choice([-1, 0, 1, 2, 5, 100])], np.int64),
              np.array([random.choice([0, 0.25, 0.5, 0.7, 1])], np.float32),
              some(random, 0.6, np.array([random.choice([-1, 0, 0.3])], np.float32))]
    return Case("NonMaxSuppression", int(random.choice([10, 11, 22])), inputs,
                given(center_point_box=some(random, 0.5, int(random.integers(0, 2)))))


def regions(random, count, is_ordered, far=10):
    corners = random.uniform(-2, far, (count, 4))
    if is_ordered:
        corners = np.concatenate([np.minimum(corners[:, :2], corners[:, 2:]),
                                  np.maximum(corners[:, :2], corners[:, 2:])], axis=1)
    return np.round(corners, int(random.integers(0, 3))).astype(np.float32)


def aligned(random):
    opset = int(random.choice([10, 16, 16, 22]))
    x = floats(random, *sizes_of(random, 4, 7))
    count, samples = int(random.integers(0, 5)), int(random.integers(0, 4))
    # ONNX Runtime crashes for a negative number of samples.
    boxes = regions(random, count, samples == 0 or random.random() < 0.7)
    shift = some(random, 0.6, str(random.choice(["half_pixel", "output_half_pixel"])))
    judges = {10: ("onnxruntime",), 16: ("onnxruntime", "reference"), 22: ("reference",)}[opset]
    return Case("RoiAlign", opset, [x, boxes, random.integers(0, len(x), count)], given(
        coordinate_transformation_mode=shift if opset > 10 else None,
        mode=some(random, 0.5, str(random.choice(["avg", "max"]))),
        output_height=some(random, 0.8, int(random.integers(1, 5))),
        output_width=some(random, 0.8, int(random.integers(1, 5))), sampling_ratio=samples,
        spatial_scale=some(random, 0.5, float(random.choice([0.5, 0.3, 1.5])))),
        judges=judges, floating=(0, 1))


def pooled_regions(random):
    x = floats(random, *sizes_of(random, 4, 9))
    count = int(random.integers(1, 5))
    boxes = np.concatenate([random.integers(0, len(x), (count, 1)),
                            regions(random, count, random.random() < 0.8)], axis=1)
    return Case("MaxRoiPool", 21, [x, boxes.astype(np.float32)], given(
        pooled_shape=sizes_of(random, 2, 6),
        spatial_scale=some(random, 0.5, float(random.choice([0.5, 0.3, 1.5])))),
        judges=("onnxruntime",), floating=(0, 1))


def cropped_regions(random):
    x = floats(random, *sizes_of(random, 4, 7))
    count = int(random.integers(1, 5))
    boxes = random.uniform(-0.2, 1.2, (count, 4)).astype(np.float32)
    return Case("CropAndResize", 16, [x, boxes, random.integers(0, len(x), count).astype(np.int32),
                                      np.array(sizes_of(random, 2, 6), np.int32)], given(
        mode=some(random, 0.5, str(random.choice(["bilinear", "nearest"]))),
        extrapolation_value=some(random, 0.5, 3.5)),
        domain="com.microsoft", judges=("onnxruntime",))


# --- Sampling ------------------------------------------------------------------------------------


def sampled(random):
    opset = int(random.choice([16, 20, 22]))
    is_ours = opset > 16 or random.random() < 0.7
    axes = int(random.choice([1, 2, 2, 3])) if opset > 16 else 2
    batch, channels = sizes_of(random, 2, 3)
    x = floats(random, batch, channels, *sizes_of(random, axes, 6))
    grid = random.uniform(-1.8, 1.8, (batch, *sizes_of(random, axes, 4), axes))
    mode = str(random.choice(["linear", "nearest", "cubic"]))
    padding = str(random.choice(["zeros", "border", "reflection"]))
    # ONNX Runtime has no other ranks. With "cubic", onnx.reference moves positions to the border,
    # though the sentence for "border" is that for "zeros", where it does not.
    is_moved = mode == "cubic" and padding == "border"
    judges = {"onnxruntime": axes > 1, "reference": opset > 16 and not is_moved}
    prefix = "bi" if opset == 16 and mode != "nearest" else ""
    return Case("GridSample", opset, [x, grid.astype(np.float32)], given(
        mode=None if mode == "linear" and random.random() < 0.5 else prefix + mode,
        padding_mode=None if padding == "zeros" and random.random() < 0.5 else padding,
        align_corners=some(random, 0.6, int(random.integers(0, 2)))),
        domain="" if is_ours else "com.microsoft", floating=(0, 1),
        judges=tuple(judge for judge, is_asked in judges.items() if is_asked))


def affine(random):
    axes = int(random.integers(2, 4))
    size = [*sizes_of(random, 2, 3), *sizes_of(random, axes, 5)]
    aligns = int(random.integers(0, 2))
    # If corners are aligned, a single element is at -1 for onnx.reference, and at 1 for ONNX
    # Runtime.
    is_common = not aligns or min(size[2:]) > 1
    return Case("AffineGrid", 20, [floats(random, size[0], axes, axes + 1), np.array(size)],
                {"align_corners": aligns},
                judges=("onnxruntime", "reference") if is_common else ("reference",),
                floating=(0,), halves_since=20)


# --- Others --------------------------------------------------------------------------------------


def centred(random):
    kinds = (np.float32, np.int64, np.uint8, np.float64, np.int32)
    x = random.integers(0, 100, sizes_of(random, int(random.integers(1, 5)), 6)).astype(
        kinds[random.integers(0, len(kinds))])
    axes = None
    if random.random() < 0.6:
        axes = [int(axis) for axis in random.permutation(x.ndim)[:random.integers(1, x.ndim + 1)]]
    count = x.ndim if axes is None else len(axes)
    if axes is not None:
        axes = [axis - x.ndim if random.random() < 0.3 else axis for axis in axes]
    sizes = np.array(sizes_of(random, count, 8), random.choice([np.int32, np.int64]))
    return Case("CenterCropPad", 18, [x, sizes], given(axes=axes), judges=("reference",))


def folded(random):
    axes = int(random.choice([1, 2, 2, 3, 4]))
    block, strides, dilations = (sizes_of(random, axes, most) for most in (3, 3, 2))
    pads = sizes_of(random, 2 * axes, 2, 0)
    reach = [(block[i] - 1) * dilations[i] + 1 - pads[i] - pads[i + axes] for i in range(axes)]
    image = [max(1, reach[i]) + int(random.integers(0, 4)) for i in range(axes)]
    counts = [(image[i] - reach[i]) // strides[i] + 1 for i in range(axes)]
    batch, channels = sizes_of(random, 2, 3)
    x = floats(random, batch, channels * int(np.prod(block)), int(np.prod(counts)))
    if random.random() < 0.3:
        x = (x * 100).astype(random.choice([np.int8, np.int32, np.int64, np.uint16]))
    return Case("Col2Im", 18, [x, np.array(image), np.array(block)],
                {"strides": strides, "dilations": dilations, "pads": pads},
                # ONNX Runtime is wrong for dilations of other numbers of axes.
                judges=("reference", "onnxruntime")[:2 if axes == 2 or max(dilations) == 1 else 1],
                floating=(0,) if x.dtype == np.float32 else (), halves_since=18)


def deformed(random):
    group, offset_groups = (int(random.choice([1, 1, 2])) for _ in range(2))
    kernel, strides, dilations = (sizes_of(random, 2, most) for most in (3, 2, 2))
    pads = sizes_of(random, 4, 2, 0)
    reach = [(kernel[i] - 1) * dilations[i] + 1 - pads[i] - pads[i + 2] for i in range(2)]
    image = [max(2, reach[i]) + int(random.integers(0, 3)) for i in range(2)]
    output = [(image[i] - reach[i]) // strides[i] + 1 for i in range(2)]
    batch, channels = int(random.integers(1, 3)), 2 * int(random.integers(1, 3))
    filters, taps = 2 * int(random.integers(1, 3)), kernel[0] * kernel[1]
    return Case("DeformConv", int(random.choice([19, 22])), [
        floats(random, batch, channels, *image),
        floats(random, filters, channels // group, *kernel),
        floats(random, batch, offset_groups * taps * 2, *output) / 2,
        some(random, 0.5, floats(random, filters)),
        some(random, 0.5, floats(random, batch, offset_groups * taps, *output))],
        {"group": group, "offset_group": offset_groups, "strides": strides,
         "dilations": dilations, "pads": pads,
         **given(kernel_shape=some(random, 0.5, kernel))}, floating=(0, 1, 2, 3, 4))


def unpooled(random):
    axes = int(random.integers(1, 4))
    kernel, strides = sizes_of(random, axes, 3), sizes_of(random, axes, 3)
    pads = [int(random.integers(0, kernel[i % axes])) if random.random() < 0.2 else 0
            for i in range(2 * axes)]
    batch, channels = sizes_of(random, 2, 2)
    input_sizes = sizes_of(random, axes, 3, 2)
    output = [(input_sizes[i] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + axes]
              for i in range(axes)]
    x = floats(random, batch, channels, *input_sizes)
    total = batch * channels * max(0, int(np.prod(output)))
    indices = random.integers(0, max(1, total), x.shape)
    # ONNX Runtime takes indices as those of a tensor of output_shape; in ONNX's example they are
    # those of the tensor without the elements that output_shape adds.
    larger = some(random, 0.3, np.array([batch, channels, *(
        size + int(random.integers(0, 3)) for size in output)]))
    return Case("MaxUnpool", int(random.choice([9, 11, 22])), [x, indices, larger],
                {"kernel_shape": kernel, "strides": strides, "pads": pads},
                judges=("reference",) if larger is not None else ("onnxruntime", "reference"),
                floating=(0,))


MAKERS = (suppressed, aligned, pooled_regions, cropped_regions, sampled, affine, centred, folded,
          deformed, unpooled)

# --- Those who compute ---------------------------------------------------------------------------


def model_bytes_of(case, dtypes, random):
    """The model for inputs of these types. Some inputs are constants, some sizes are open."""
    names, inputs, weights = [], {}, {}
    for index, array in enumerate(case.inputs):
        name = "" if array is None else f"i{index}"
        names.append(name)
        if array is None:
            continue
        array = array.astype(dtypes[index])
        if index > 0 and random.random() < 0.4:
            weights[name] = array
            continue
        is_open = random.random() < 0.4
        shape = [f"{name}_{axis}" for axis in range(array.ndim)] if is_open else array.shape
        inputs[name] = tensor_type(helper.np_dtype_to_tensor_dtype(array.dtype), shape)
    while names and not names[-1]:
        names.pop()
    domains = {case.domain: 1} if case.domain else None
    target = node(case.op, names, ["y"], "target", domain=case.domain, **case.attributes)
    # An operator set of a type that its version does not have would be refused.
    model = model_of([target], inputs, {"y": onnx.TypeProto()}, weights, opset=case.opset,
                     domains=domains)
    return model.SerializeToString(), {name: case.inputs[int(name[1:])].astype(
        dtypes[int(name[1:])]) for name in inputs}


def run_onnxruntime(model, fed):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, fed)[0]


def run_reference(model, fed):
    from onnx.reference import ReferenceEvaluator

    return np.asarray(ReferenceEvaluator(onnx.load_model_from_string(model)).run(None, fed)[0])


JUDGES = {"onnxruntime": run_onnxruntime, "reference": run_reference}


def answers_of(case, dtypes, seed):
    """By judge, the results of those that take the model."""
    model, fed = model_bytes_of(case, dtypes, np.random.default_rng(seed))
    found = {}
    for judge in case.judges:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found[judge] = JUDGES[judge](model, fed)
        except Exception:  # it has no kernel for the types
            continue
    return found


def difference(found, expected, error):
    if found.shape != expected.shape:
        # onnx.reference gives no result another shape.
        is_nothing = found.size == 0 and expected.size == 0
        return "" if is_nothing else f"shape {found.shape} instead of {expected.shape}"
    if expected.dtype.kind in "iub" and found.dtype != expected.dtype:
        return f"{found.dtype} instead of {expected.dtype}"
    one, other = found.astype(np.float64), expected.astype(np.float64)
    is_exact = expected.dtype.kind in "iub"
    scale = np.max(np.abs(other), initial=1)
    near = np.isclose(one, other, rtol=0 if is_exact else error,
                      atol=0 if is_exact else error * scale)
    return "" if near.all() else f"found\n{one[~near][:5]}, expected\n{other[~near][:5]}"


def explain(tessera, case, seed):
    """("", number of judges asked), or how the result differs from that of a judge."""
    random = np.random.default_rng(seed)
    dtypes = [None if array is None else array.dtype for array in case.inputs]
    error = 1e-4
    if case.floating and random.random() < 0.25:
        half = HALVES[random.integers(0, 2)]
        if half == HALVES[0] or case.opset >= case.halves_since:
            error = 2e-3 if half == HALVES[0] else 2e-2
            case = dataclasses.replace(case, inputs=[
                array if array is None or index not in case.floating
                else array.astype(half).astype(np.float32)
                for index, array in enumerate(case.inputs)])
            expected = answers_of(case, dtypes, seed)
            dtypes = [half if index in case.floating and dtype is not None else dtype
                      for index, dtype in enumerate(dtypes)]
        else:
            expected = answers_of(case, dtypes, seed)
    else:
        expected = answers_of(case, dtypes, seed)
    model, fed = model_bytes_of(case, dtypes, np.random.default_rng(seed))
    executor = tessera.load(model).bind({name: array.shape for name, array in fed.items()},
                                        threads=2, optimize=False)
    found = np.asarray(executor.run(fed)[0])
    texts = {judge: difference(found, answer, error) for judge, answer in expected.items()}
    wrong = {judge: text for judge, text in texts.items() if text}
    return ("" if not wrong else f"{wrong}"), len(expected)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_random_uses_give_what_others_give(tessera, make, is_long):
    asked = 0
    count = 1000 if is_long else 30
    for seed in range(count):
        case = make(np.random.default_rng(seed))
        text, judges = explain(tessera, case, seed)
        asked += judges
        assert not text, (
            f"seed {seed}: {case.op}-{case.opset} {case.attributes} "
            f"{[None if array is None else array.shape for array in case.inputs]}\n{text}")
    assert asked > count / 2
