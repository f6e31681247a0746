// Resize: interpolates a tensor to another size; resample.cc has the arithmetic. Version 10 has
// scales only and equals Upsample; 11 adds sizes, coordinate modes and cubic interpolation, 18 a
// choice of axes, antialiasing and aspect ratios.
#include <algorithm>
#include <cmath>
#include <map>

#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/resize/resample.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr int kFirstFullVersion = 11;
constexpr int kFirstAxesVersion = 18;
constexpr size_t kRoi = 1;
constexpr size_t kSizes = 3;

size_t scales_index(int version) { return version < kFirstFullVersion ? 1 : 2; }

// --- Attributes ----------------------------------------------------------------------------------

template <class Enum>
using Names = std::map<std::string, Enum>;

const Names<Interpolation> kInterpolations = {{"nearest", Interpolation::Nearest},
                                              {"linear", Interpolation::Linear},
                                              {"cubic", Interpolation::Cubic}};

const Names<Rounding> kRoundings = {{"round_prefer_floor", Rounding::PreferFloor},
                                    {"round_prefer_ceil", Rounding::PreferCeil},
                                    {"floor", Rounding::Floor},
                                    {"ceil", Rounding::Ceil}};

// The coordinate modes and the versions that have them.
struct CoordinatesName {
  Coordinates coordinates;
  int since;
  int until;
};
const Names<CoordinatesName> kCoordinates = {
    {"half_pixel", {Coordinates::HalfPixel, 11, kAnyVersion}},
    {"half_pixel_symmetric", {Coordinates::HalfPixelSymmetric, 19, kAnyVersion}},
    {"pytorch_half_pixel", {Coordinates::PytorchHalfPixel, 11, kAnyVersion}},
    {"align_corners", {Coordinates::AlignCorners, 11, kAnyVersion}},
    {"asymmetric", {Coordinates::Asymmetric, 11, kAnyVersion}},
    {"tf_half_pixel_for_nn", {Coordinates::TfHalfPixelForNn, 11, 12}},
    {"tf_crop_and_resize", {Coordinates::TfCropAndResize, 11, kAnyVersion}}};

template <class Enum>
void check_name(const InferContext& context, const char* attribute, const Names<Enum>& names) {
  const std::string& name = context.node().attributes.get_string(attribute);
  if (names.contains(name)) return;
  std::string known;
  for (const auto& [text, value] : names) known += (known.empty() ? "'" : ", '") + text + "'";
  context.fail(std::string("expected ") + attribute + " to be one of " + known + ", found '" +
               name + "'");
}

void check_attributes(const InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  const int version = context.version();
  check_name(context, "mode", kInterpolations);
  const std::string& mode = attributes.get_string("mode");
  if (version < kFirstFullVersion && mode == "cubic") {
    context.fail("expected mode 'nearest' or 'linear' before version 11, found 'cubic'");
  }
  if (mode != "nearest" && context.element(0) == DataType::Bool) {
    context.fail_input(0, "expected numbers for mode '" + mode + "', found bool");
  }
  if (version < kFirstFullVersion) return;
  check_name(context, "nearest_mode", kRoundings);
  check_name(context, "coordinate_transformation_mode", kCoordinates);
  const std::string& coordinates = attributes.get_string("coordinate_transformation_mode");
  const CoordinatesName& found = kCoordinates.at(coordinates);
  if (version < found.since || version > found.until) {
    context.fail("expected a coordinate_transformation_mode of version " + std::to_string(version) +
                 ", found '" + coordinates + "'");
  }
  if (version < kFirstAxesVersion) return;
  const std::string& policy = attributes.get_string("keep_aspect_ratio_policy");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller") {
    context.fail(
        "expected keep_aspect_ratio_policy 'stretch', 'not_larger' or 'not_smaller', "
        "found '" +
        policy + "'");
  }
}

ResampleOptions options_of(const Node& node) {
  ResampleOptions options;
  const Attributes& attributes = node.attributes;
  options.interpolation = kInterpolations.at(attributes.get_string("mode"));
  if (node.version < kFirstFullVersion) {
    options.rounding = Rounding::Legacy;
    return options;
  }
  options.coordinates =
      kCoordinates.at(attributes.get_string("coordinate_transformation_mode")).coordinates;
  options.rounding = kRoundings.at(attributes.get_string("nearest_mode"));
  options.cubic_coefficient = attributes.get_float("cubic_coeff_a");
  options.is_outside_excluded = attributes.get_int("exclude_outside") != 0;
  options.extrapolation_value = attributes.get_float("extrapolation_value");
  options.is_antialiased =
      node.version >= kFirstAxesVersion && attributes.get_int("antialias") != 0;
  return options;
}

// --- Shape rule ----------------------------------------------------------------------------------

// The axes to which scales, sizes and roi apply.
std::pmr::vector<int64_t> resized_axes(
    const Node& node, int64_t rank,
    std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  std::pmr::vector<int64_t> axes(memory);
  if (const auto* given = node.attributes.find_ints("axes")) {
    for (const int64_t axis : *given) axes.push_back(axis < 0 ? axis + rank : axis);
    return axes;
  }
  for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

// The common scale that keeps the aspect ratio; nullopt if every axis has its own.
std::optional<SizeRatio> common_scale(const Node& node, std::span<const int64_t> axes,
                                      std::span<const int64_t> input,
                                      std::span<const int64_t> sizes) {
  if (node.version < kFirstAxesVersion || axes.empty()) return std::nullopt;
  const std::string& policy = node.attributes.get_string("keep_aspect_ratio_policy");
  if (policy == "stretch") return std::nullopt;
  const bool is_smallest = policy == "not_larger";
  std::optional<SizeRatio> common;
  for (size_t index = 0; index < axes.size(); ++index) {
    const SizeRatio scale = {sizes[index], input[static_cast<size_t>(axes[index])]};
    const bool is_better = !common || (is_smallest ? scale.value() < common->value()
                                                   : scale.value() > common->value());
    if (is_better) common = scale;
  }
  return common;
}

// Whether optional input `index` is present and not the empty tensor that marks an omitted input in
// version 11.
bool is_list_given(const InferContext& context, size_t index) {
  if (!context.has_input(index)) return false;
  const Shape* shape = context.shape(index);
  return shape == nullptr || shape->size() != 1 || shape->front() != Dim(0);
}

void check_length(const InferContext& context, size_t index, size_t found, size_t expected) {
  if (found == expected) return;
  context.fail_input(
      index, "expected " + std::to_string(expected) + " elements, found " + std::to_string(found));
}

Dim sized_dim(const InferContext& context, const Dim& input, const Dim& size) {
  if (size.is_known() && (size.value() < 0 || (input == Dim(0) && size != Dim(0)))) {
    context.fail_input(kSizes,
                       "expected sizes of at least 0, and 0 for what has no elements, "
                       "found " +
                           size.text() + " for dimension " + input.text());
  }
  return size;
}

void resize_to_sizes(InferContext& context, std::span<const int64_t> axes, Shape& shape) {
  const auto sizes = dim_list(context, kSizes);
  if (sizes) check_length(context, kSizes, sizes->size(), axes.size());
  const bool is_stretched =
      context.version() < kFirstAxesVersion ||
      context.node().attributes.get_string("keep_aspect_ratio_policy") == "stretch";
  const bool is_all_known = sizes && is_known(*sizes) && is_known(shape);
  std::optional<SizeRatio> scale;
  if (is_all_known) {
    for (size_t index = 0; index < axes.size(); ++index) {
      sized_dim(context, shape[static_cast<size_t>(axes[index])], (*sizes)[index]);
    }
    scale = common_scale(context.node(), axes, dims_from(shape), dims_from(*sizes));
  }
  for (size_t index = 0; index < axes.size(); ++index) {
    const auto axis = static_cast<size_t>(axes[index]);
    if (!sizes || (!is_stretched && !is_all_known)) {
      shape[axis] = unknown_dim(context, 0, axis);
    } else if (scale) {
      // Rounds half up. An empty dimension makes the scale infinite or NaN.
      const double exact = static_cast<double>(scale->resized) *
                           static_cast<double>(shape[axis].value()) /
                           static_cast<double>(scale->original);
      const double scaled = std::floor(exact) + (exact - std::floor(exact) >= 0.5 ? 1 : 0);
      if (!(scaled < 0x1p62)) {
        context.fail("expected a dimension that fits 64 bits, found " + shape[axis].text() +
                     " scaled by " + std::to_string(scale->value()));
      }
      shape[axis] = static_cast<int64_t>(scaled);
    } else {
      shape[axis] = sized_dim(context, shape[axis], (*sizes)[index]);
    }
  }
}

void resize_by_scales(InferContext& context, std::span<const int64_t> axes, Shape& shape) {
  const size_t scales_input = scales_index(context.version());
  check_one_dimension(context, scales_input);
  const Tensor* scales = context.constant(scales_input);
  if (scales != nullptr) {
    check_length(context, scales_input, static_cast<size_t>(scales->elements()), axes.size());
  }
  for (size_t index = 0; index < axes.size(); ++index) {
    const auto axis = static_cast<size_t>(axes[index]);
    shape[axis] = scales != nullptr ? scaled_dim(context, shape[axis], scales->as<float>()[index])
                                    : unknown_dim(context, 0, axis);
  }
}

void check_roi(const InferContext& context, size_t axes) {
  if (context.node().attributes.get_string("coordinate_transformation_mode") !=
      "tf_crop_and_resize") {
    return;
  }
  if (!is_list_given(context, kRoi)) {
    context.fail_input(kRoi, "mode 'tf_crop_and_resize' requires it, but the node leaves it out");
  }
  const Shape* shape = context.shape(kRoi);
  if (shape != nullptr && is_known(*shape) &&
      product(*shape).value() != 2 * static_cast<int64_t>(axes)) {
    context.fail_input(
        kRoi, "expected " + std::to_string(2 * axes) + " elements, found shape " + text(*shape));
  }
}

void infer_resize(InferContext& context) {
  check_attributes(context);
  const bool is_full = context.version() >= kFirstFullVersion;
  const bool has_scales = is_list_given(context, scales_index(context.version()));
  const bool has_sizes = is_full && is_list_given(context, kSizes);
  if (has_scales == has_sizes) {
    context.fail(std::string("expected either scales or sizes, found ") +
                 (has_scales ? "both" : "neither"));
  }
  const Shape* input = context.shape(0);
  if (input == nullptr) return context.set_output(0, context.element(0));
  Shape shape = *input;
  const auto rank = static_cast<int64_t>(shape.size());
  if (const auto* given = context.node().attributes.find_ints("axes")) {
    normalized_axes(context, *given, rank);
  }
  const std::pmr::vector<int64_t> axes = resized_axes(context.node(), rank);
  if (is_full) check_roi(context, axes.size());
  if (has_sizes) {
    resize_to_sizes(context, axes, shape);
  } else {
    resize_by_scales(context, axes, shape);
  }
  context.set_output(0, context.element(0), shape);
}

// --- Kernel --------------------------------------------------------------------------------------

void read_roi(const KernelCall& call, std::span<const int64_t> axes,
              std::span<ResampleAxis> result) {
  const TensorView& roi = call.inputs[kRoi];
  visit_floating(roi.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto values = roi.as<T>();
    for (size_t index = 0; index < axes.size(); ++index) {
      ResampleAxis& axis = result[static_cast<size_t>(axes[index])];
      axis.roi_start = static_cast<float>(static_cast<compute_t<T>>(values[index]));
      axis.roi_end = static_cast<float>(static_cast<compute_t<T>>(values[axes.size() + index]));
    }
  });
}

void run_resize(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  std::pmr::vector<ResampleAxis> result(&call.scratch);
  for (size_t axis = 0; axis < input.dims.size(); ++axis) {
    result.push_back({input.dims[axis], output.dims[axis]});
  }
  const std::pmr::vector<int64_t> axes = resized_axes(call.node, input.rank(), &call.scratch);
  const size_t scales_input = scales_index(call.node.version);
  const bool has_scales = call.has_input(scales_input) && call.inputs[scales_input].elements > 0;
  std::optional<SizeRatio> common;
  if (!has_scales && !axes.empty()) {
    common = common_scale(call.node, axes, input.dims, integers_of(call, kSizes));
  }
  for (size_t index = 0; index < axes.size(); ++index) {
    ResampleAxis& axis = result[static_cast<size_t>(axes[index])];
    if (has_scales) axis.given_scale = call.inputs[scales_input].as<float>()[index];
    axis.ratio = common.value_or(SizeRatio{axis.output, axis.input});
  }
  const ResampleOptions options = options_of(call.node);
  if (options.coordinates == Coordinates::TfCropAndResize) read_roi(call, axes, result);
  resample(call, options, result);
}

}  // namespace

std::vector<Op> resize_ops() {
  return {{.name = "Resize",
           .versions = {10, 11, 13, 18, 19},
           // Version 11 declares roi and scales as required, but its files omit them as later ones
           // do, and all runtimes accept that.
           .inputs = {{"X", "T1"},
                      {"roi", "T2", Arity::Optional, 11},
                      {"scales", "tensor(float)", Arity::Required, 10, 10},
                      {"scales", "tensor(float)", Arity::Optional, 11},
                      {"sizes", "tensor(int64)", Arity::Optional, 11}},
           .outputs = {{"Y", "T1"}},
           .type_variables = {{"T1", kAllTypes},
                              {"T2", {DataType::Float16, DataType::Float32, DataType::Float64}},
                              {"tensor(float)", {DataType::Float32}},
                              {"tensor(int64)", kInt64Type}},
           .attributes = {{"mode", AttributeKind::String, std::string("nearest")},
                          {"coordinate_transformation_mode", AttributeKind::String,
                           std::string("half_pixel"), 11},
                          {"nearest_mode", AttributeKind::String, std::string("round_prefer_floor"),
                           11},
                          {"cubic_coeff_a", AttributeKind::Float, -0.75F, 11},
                          {"exclude_outside", AttributeKind::Int, int64_t{0}, 11},
                          {"extrapolation_value", AttributeKind::Float, 0.0F, 11},
                          {"antialias", AttributeKind::Int, int64_t{0}, 18},
                          {"axes", AttributeKind::Ints, std::nullopt, 18},
                          {"keep_aspect_ratio_policy", AttributeKind::String,
                           std::string("stretch"), 18}},
           .infer = infer_resize,
           .kernel = run_resize}};
}

}  // namespace tessera::ops
