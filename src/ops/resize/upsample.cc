// Upsample: the predecessor of Resize, removed in operator set 10. The scales are attributes until
// version 8 and an input in 9.
#include "ops/op.h"
#include "ops/resize/resample.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

constexpr int kScalesInputVersion = 9;

// Version 1 supports 2-D feature maps only: its two scales apply to the last two of four
// dimensions.
std::pmr::vector<float> scales_attribute(
    const Node& node, std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  const Attributes& attributes = node.attributes;
  if (node.version < 7) {
    return {{1, 1, attributes.get_float("height_scale"), attributes.get_float("width_scale")},
            memory};
  }
  const std::vector<float>& scales = *attributes.find_floats("scales");
  return {scales.begin(), scales.end(), memory};
}

std::optional<std::pmr::vector<float>> scales_of(const InferContext& context) {
  if (context.version() < kScalesInputVersion) return scales_attribute(context.node());
  check_one_dimension(context, 1);
  const Tensor* scales = context.constant(1);
  if (scales == nullptr) return std::nullopt;
  return std::pmr::vector<float>(scales->as<float>().begin(), scales->as<float>().end());
}

const char* linear_mode(const Node& node) { return node.version < 7 ? "bilinear" : "linear"; }

void infer_upsample(InferContext& context) {
  const std::string& mode = context.node().attributes.get_string("mode");
  const std::string linear = linear_mode(context.node());
  if (mode != "nearest" && mode != linear) {
    context.fail("expected mode 'nearest' or '" + linear + "', found '" + mode + "'");
  }
  if (mode == linear && context.element(0) == DataType::Bool) {
    context.fail_input(0, "expected numbers for mode '" + linear + "', found bool");
  }
  const Shape* shape = context.shape(0);
  const auto scales = scales_of(context);
  if (shape == nullptr) return context.set_output(0, context.element(0));
  if (!scales) {
    return context.set_output(0, context.element(0),
                              unknown_shape(context, 0, static_cast<int64_t>(shape->size())));
  }
  if (scales->size() != shape->size()) {
    context.fail("expected a scale for each of " + std::to_string(shape->size()) +
                 " dimensions, found " + std::to_string(scales->size()));
  }
  Shape output;
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    const float scale = (*scales)[axis];
    if (!(scale >= 1)) {
      context.fail("expected scales of at least 1, found " + std::to_string(scale));
    }
    output.push_back(scaled_dim(context, (*shape)[axis], scale));
  }
  context.set_output(0, context.element(0), output);
}

void run_upsample(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  std::pmr::vector<float> scales(&call.scratch);
  if (call.node.version < kScalesInputVersion) {
    scales = scales_attribute(call.node, &call.scratch);
  } else {
    scales.assign(call.inputs[1].as<float>().begin(), call.inputs[1].as<float>().end());
  }
  ResampleOptions options;
  if (call.node.attributes.get_string("mode") == linear_mode(call.node)) {
    options.interpolation = Interpolation::Linear;
  }
  std::pmr::vector<ResampleAxis> axes(&call.scratch);
  for (size_t axis = 0; axis < input.dims.size(); ++axis) {
    axes.push_back(
        {.input = input.dims[axis], .output = output.dims[axis], .given_scale = scales[axis]});
  }
  resample(call, options, axes);
}

}  // namespace

std::vector<Op> upsample_ops() {
  return {{.name = "Upsample",
           .versions = {1, 7, 9},
           .inputs = {{"X", "T"}, {"scales", "tensor(float)", Arity::Required, 9}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kAllTypes}, {"tensor(float)", {DataType::Float32}}},
           .attributes = {{"mode", AttributeKind::String, std::string("nearest")},
                          {"scales", AttributeKind::Floats, std::nullopt, 7, 8, true},
                          {"height_scale", AttributeKind::Float, std::nullopt, 1, 6, true},
                          {"width_scale", AttributeKind::Float, std::nullopt, 1, 6, true}},
           .infer = infer_upsample,
           .kernel = run_upsample,
           .last_version = 9}};
}

}  // namespace tessera::ops
