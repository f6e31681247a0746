// BatchNormalization with given statistics, and normalization with own statistics:
// LayerNormalization and InstanceNormalization.
#include <algorithm>
#include <string>
#include <vector>

#include "base/accuracy.h"
#include "base/chain.h"
#include "base/context.h"
#include "base/families.h"
#include "base/formats.h"
#include "base/implementation.h"
#include "base/primitive.h"
#include "tessera/backend_ops.h"

namespace tessera::onednn {

using dnnl::memory;
using dnnl::normalization_flags;
using plugin::Failure;
using plugin::Node;
using plugin::Value;

namespace {

constexpr auto kInference = dnnl::prop_kind::forward_inference;

void check_exact(const Node& node, int64_t length) {
  const std::string reason = explain_inexact_statistics(node.op(), length);
  if (!reason.empty()) throw Failure(TESSERA_UNSUPPORTED, reason);
}

double seconds_for(const Context& context, const Node& node,
                   const dnnl::primitive_desc_base& description) {
  const auto elements = static_cast<double>(node.input(0).type().elements());
  return context.optimistic_seconds(4 * elements, 2 * elements * sizeof(float),
                                    description.impl_info_str());
}

// --- BatchNormalization --------------------------------------------------------------------------

// Since version 14 an attribute says so, before that the number of outputs, in version 6 is_test.
bool is_training(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  if (attributes.has("training_mode")) return attributes.get_int("training_mode") != 0;
  if (attributes.has("is_test")) return attributes.get_int("is_test") == 0;
  return false;
}

void check_batch_normalization(const Node& node) {
  if (is_training(node)) throw Failure(TESSERA_UNSUPPORTED, "normalises by given statistics only");
  for (size_t index = 1; index < node.output_count(); ++index) {
    if (node.output(index).is_present()) {
      throw Failure(TESSERA_UNSUPPORTED, "computes no batch statistics (training mode)");
    }
  }
  if (node.attributes().get_int("spatial", 1) == 0) {
    throw Failure(TESSERA_UNSUPPORTED, "has one mean and variance for each channel only");
  }
  for (size_t index = 0; index < 5; ++index) check_usable(node.input(index));
  if (node.input(0).type().rank < 2) throw Failure(TESSERA_UNSUPPORTED, "needs batch and channels");
}

// A following Relu, as a step.
std::vector<ChainStep> relu_after(const Chains& chains, const Value& value) {
  std::vector<ChainStep> steps = chains.after(value);
  if (steps.size() > 1) steps.resize(1);
  if (steps.empty()) return steps;
  const PostOperation& operation = steps.front().operations.front();
  const bool is_relu = operation.operand < 0 && operation.function.alpha == 0 &&
                       operation.function.algorithm == dnnl::algorithm::eltwise_relu;
  if (!is_relu) steps.clear();
  return steps;
}

bool offer_batch_normalization(Context& context, const Node& node, Format format,
                               const std::vector<ChainStep>& steps) {
  const memory::desc desc = describe(format, node.input(0).type().dims);
  dnnl::primitive_attr attributes = context.attributes();
  dnnl::post_ops operations;
  std::vector<int32_t> nodes = {node.id()};
  int32_t output = node.output(0).id();
  for (const ChainStep& step : steps) {
    operations.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
    nodes.insert(nodes.end(), step.nodes.begin(), step.nodes.end());
    output = step.result;
  }
  attributes.set_post_ops(operations);
  const dnnl::batch_normalization_forward::primitive_desc description(
      context.engine(), kInference, desc, desc, node.attributes().get_float("epsilon", 1e-5F),
      normalization_flags::use_scale | normalization_flags::use_shift |
          normalization_flags::use_global_stats,
      attributes, true);
  if (!description || (is_reference(description) && format != Format::RowMajor)) return false;
  PrimitiveOffer offer(std::move(nodes), description);
  offer.read(DNNL_ARG_SRC, node.input(0), desc);
  const memory::desc channels = describe(Format::RowMajor, node.input(1).type().dims);
  const int arguments[] = {DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE};
  for (size_t index = 0; index < 4; ++index) {
    offer.read_as(arguments[index], node.input(index + 1), channels, TESSERA_LAYOUT_DEFAULT);
  }
  offer.write(DNNL_ARG_DST, context.graph().value(output), desc);
  offer.allow_in_place(node.input(0));
  context.add(offer.candidate(seconds_for(context, node, description)));
  return true;
}

void offer_batch_normalizations(Context& context, const Chains& chains, const Node& node) {
  check_batch_normalization(node);
  const size_t rank = node.input(0).type().dims.size();
  const std::vector<ChainStep> relu = relu_after(chains, node.output(0));
  const auto offer_formats = [&](const std::vector<ChainStep>& steps) {
    for (const Format format : {Format::Nchw16c, Format::Nchw8c, Format::Nhwc, Format::RowMajor}) {
      if (can_hold(format, rank)) offer_batch_normalization(context, node, format, steps);
    }
  };
  if (!relu.empty()) offer_formats(relu);
  offer_formats({});
}

// --- LayerNormalization --------------------------------------------------------------------------

// A parameter must have the sizes of the normalized axes; leading ones do not matter.
bool fits_rows(const Value& parameter, const std::vector<int64_t>& input, size_t axis) {
  std::vector<int64_t> expected(input.begin() + static_cast<int64_t>(axis), input.end());
  const std::vector<int64_t> found = parameter.type().dims;
  const auto first = std::find_if(found.begin(), found.end(), [](int64_t dim) { return dim != 1; });
  const auto wanted =
      std::find_if(expected.begin(), expected.end(), [](int64_t dim) { return dim != 1; });
  return std::equal(first, found.end(), wanted, expected.end());
}

void offer_layer_normalization(Context& context, const Node& node) {
  check_usable(node.input(0));
  for (size_t index = 1; index < node.output_count(); ++index) {
    if (node.output(index).is_present()) {
      throw Failure(TESSERA_UNSUPPORTED, "does not return mean and deviation");
    }
  }
  const std::vector<int64_t> dims = node.input(0).type().dims;
  const size_t axis = plugin::normalized_axis(node.attributes().get_int("axis", -1), dims.size());
  int64_t rows = 1;
  int64_t length = 1;
  for (size_t position = 0; position < dims.size(); ++position) {
    (position < axis ? rows : length) *= dims[position];
  }
  check_exact(node, length);
  auto flags = normalization_flags::none;
  const memory::desc parameter = describe(Format::RowMajor, {length});
  for (const size_t index : {size_t{1}, size_t{2}}) {
    if (!node.input(index).is_present()) continue;
    check_usable(node.input(index));
    if (!fits_rows(node.input(index), dims, axis)) {
      throw Failure(TESSERA_UNSUPPORTED, "takes a scale and shift of the normalised axes only");
    }
    flags |= index == 1 ? normalization_flags::use_scale : normalization_flags::use_shift;
  }
  const memory::desc desc = describe(Format::RowMajor, {rows, length});
  const dnnl::layer_normalization_forward::primitive_desc description(
      context.engine(), kInference, desc, desc, node.attributes().get_float("epsilon", 1e-5F),
      flags, context.attributes(), true);
  if (!description) throw Failure(TESSERA_UNSUPPORTED, "has no layer normalization of this shape");
  PrimitiveOffer offer({node.id()}, description);
  offer.read_as(DNNL_ARG_SRC, node.input(0), desc, TESSERA_LAYOUT_DEFAULT);
  for (const size_t index : {size_t{1}, size_t{2}}) {
    if (!node.input(index).is_present()) continue;
    offer.read_as(index == 1 ? DNNL_ARG_SCALE : DNNL_ARG_SHIFT, node.input(index), parameter,
                  TESSERA_LAYOUT_DEFAULT);
  }
  offer.write_as(DNNL_ARG_DST, node.output(0), desc, TESSERA_LAYOUT_DEFAULT);
  offer.allow_in_place(node.input(0));
  context.add(offer.candidate(seconds_for(context, node, description)));
}

// --- InstanceNormalization -----------------------------------------------------------------------

// A batch normalization with own statistics of a single image, whose channels are those of all
// images. The parameters are repeated for each image.
void offer_instance_normalization(Context& context, const Node& node) {
  for (size_t index = 0; index < 3; ++index) check_usable(node.input(index));
  const std::vector<int64_t> dims = node.input(0).type().dims;
  const int64_t batch = dims[0];
  const int64_t channels = dims[1];
  const int64_t length = node.input(0).type().elements() / (batch * channels);
  check_exact(node, length);
  const memory::desc desc = describe(Format::RowMajor, {1, batch * channels, length});
  const dnnl::batch_normalization_forward::primitive_desc description(
      context.engine(), kInference, desc, desc, node.attributes().get_float("epsilon", 1e-5F),
      normalization_flags::use_scale | normalization_flags::use_shift, context.attributes(), true);
  if (!description) throw Failure(TESSERA_UNSUPPORTED, "has no normalization of this shape");
  PrimitiveOffer offer({node.id()}, description);
  offer.read_as(DNNL_ARG_SRC, node.input(0), desc, TESSERA_LAYOUT_DEFAULT);
  const memory::desc stored = describe(Format::RowMajor, {channels});
  const memory::desc wanted = describe(Format::RowMajor, {batch * channels});
  for (const size_t index : {size_t{1}, size_t{2}}) {
    const int argument = index == 1 ? DNNL_ARG_SCALE : DNNL_ARG_SHIFT;
    const Value parameter = node.input(index);
    if (batch == 1) {
      offer.read_as(argument, parameter, stored, TESSERA_LAYOUT_DEFAULT);
      continue;
    }
    if (!parameter.is_constant()) {
      throw Failure(TESSERA_UNSUPPORTED,
                    "repeats constant parameters only, which '" + parameter.name() + "' is not");
    }
    offer.read_packed(argument, parameter, wanted, "onednn:repeated" + std::to_string(batch),
                      [batch, channels](const plugin::Buffer& from, void* to) {
                        const float* source = from.as<float>();
                        float* target = static_cast<float*>(to);
                        for (int64_t image = 0; image < batch; ++image) {
                          std::copy_n(source, channels, target + image * channels);
                        }
                      });
  }
  offer.write_as(DNNL_ARG_DST, node.output(0), desc, TESSERA_LAYOUT_DEFAULT);
  offer.allow_in_place(node.input(0));
  context.add(offer.candidate(seconds_for(context, node, description)));
}

}  // namespace

void propose_normalizations(Context& context) {
  const Chains& chains = context.chains();
  context.for_each({"BatchNormalization"},
                   [&](const Node& node) { offer_batch_normalizations(context, chains, node); });
  context.for_each({"LayerNormalization"},
                   [&](const Node& node) { offer_layer_normalization(context, node); });
  context.for_each({"InstanceNormalization"},
                   [&](const Node& node) { offer_instance_normalization(context, node); });
}

}  // namespace tessera::onednn
