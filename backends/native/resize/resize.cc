// Resize and Upsample: to the nearest element of any type, linear and cubic in float32; in each
// layout with whole blocks of channels.
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/any_address.h"
#include "base/families.h"
#include "copy/copy_offer.h"
#include "copy/storage_axes.h"
#include "copy/table_copy.h"
#include "layout/strided_layout.h"
#include "resize/resample.h"
#include "resize/separable.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::ResizeAxis;
using plugin::ResizeCoordinates;
using plugin::RunContext;
using plugin::Value;

namespace {

constexpr int32_t kFirstFullVersion = 11;
constexpr int32_t kFirstAxesVersion = 18;
constexpr size_t kRoi = 1;
constexpr size_t kSizes = 3;

Interpolation interpolation_of(const Node& node) {
  const std::string mode = node.attributes().get_string("mode", "nearest");
  if (mode == "nearest") return Interpolation::Nearest;
  if (mode == "linear" || mode == "bilinear") return Interpolation::Linear;
  if (mode == "cubic") return Interpolation::Cubic;
  throw plugin::Failure(TESSERA_UNSUPPORTED, "does not know '" + mode + "'");
}

// Attribute keep_aspect_ratio_policy.
enum class AspectRatio : uint8_t { Stretch, NotLarger, NotSmaller };

// How a node resizes tensors of any sizes.
struct ResizeRule {
  ResampleOptions options;
  std::vector<ResizeAxis> axes;    // their sizes are those of the run
  std::vector<size_t> sized;       // the axes that are resized to sizes, not by a given scale
  std::vector<int64_t> max_sizes;  // of these axes, unless `aspect_ratio` is Stretch
  AspectRatio aspect_ratio = AspectRatio::Stretch;
};

// The elements of a float32 constant; throws if it is not known.
std::vector<float> known_floats(const Value& value, const char* name) {
  if (!value.is_constant() || value.constant() == nullptr ||
      value.type().data_type != TESSERA_FLOAT32) {
    throw plugin::Failure(TESSERA_UNSUPPORTED,
                          std::string("takes ") + name + " as float32 constants only");
  }
  const auto elements = value.constant_as<float>();
  return {elements.begin(), elements.end()};
}

std::vector<float> upsample_scales(const Node& node) {
  if (node.version() >= 9) return known_floats(node.input(1), "scales");
  if (node.version() >= 7) return node.attributes().get_floats("scales");
  return {1, 1, node.attributes().get_float("height_scale"),
          node.attributes().get_float("width_scale")};
}

ResampleOptions resize_options(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  ResampleOptions options;
  options.interpolation = interpolation_of(node);
  if (node.version() < kFirstFullVersion) {
    options.rounding = plugin::ResizeRounding::Legacy;
    return options;
  }
  options.coordinates = plugin::resize_coordinates(
      attributes.get_string("coordinate_transformation_mode", "half_pixel"));
  options.rounding =
      plugin::resize_rounding(attributes.get_string("nearest_mode", "round_prefer_floor"));
  options.cubic_coefficient = attributes.get_float("cubic_coeff_a", -0.75F);
  options.is_outside_excluded = attributes.get_int("exclude_outside") != 0;
  options.extrapolation_value = attributes.get_float("extrapolation_value");
  options.is_antialiased =
      node.version() >= kFirstAxesVersion && attributes.get_int("antialias") != 0;
  return options;
}

// Sets how axes are resized to sizes: with a common scale, if the aspect ratio is kept.
void read_sizes(const Node& node, std::vector<size_t> which, ResizeRule& rule) {
  rule.sized = std::move(which);
  const std::string policy = node.attributes().get_string("keep_aspect_ratio_policy", "stretch");
  if (node.version() < kFirstAxesVersion || rule.sized.empty() || policy == "stretch") return;
  const auto sizes = plugin::constant_integers(node.input(kSizes));
  if (!sizes) throw plugin::Failure(TESSERA_UNSUPPORTED, "takes sizes as constants only");
  rule.max_sizes = *sizes;
  rule.aspect_ratio = policy == "not_larger" ? AspectRatio::NotLarger : AspectRatio::NotSmaller;
}

// Sets the sizes of `axes`, as many as the rule has, and the scales that follow from them.
void size_axes(const ResizeRule& rule, std::span<const int64_t> input,
               std::span<const int64_t> output, std::span<ResizeAxis> axes) {
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    axes[axis] = rule.axes[axis];
    axes[axis].input = input[axis];
    axes[axis].output = output[axis];
  }
  const bool is_stretched = rule.aspect_ratio == AspectRatio::Stretch;
  for (size_t index = 0; index < rule.sized.size(); ++index) {
    ResizeAxis& axis = axes[rule.sized[index]];
    axis.resized = is_stretched ? axis.output : rule.max_sizes[index];
    axis.original = axis.input;
  }
  if (is_stretched) return;
  const auto is_smaller = [&](size_t left, size_t right) {
    return axes[left].scale() < axes[right].scale();
  };
  const ResizeAxis chosen =
      axes[rule.aspect_ratio == AspectRatio::NotLarger
               ? *std::min_element(rule.sized.begin(), rule.sized.end(), is_smaller)
               : *std::max_element(rule.sized.begin(), rule.sized.end(), is_smaller)];
  for (const size_t index : rule.sized) {
    axes[index].resized = chosen.resized;
    axes[index].original = chosen.original;
  }
}

void read_crop(const Node& node, const std::vector<size_t>& which, std::vector<ResizeAxis>& axes) {
  const std::vector<float> roi = known_floats(node.input(kRoi), "roi");
  for (size_t index = 0; index < which.size(); ++index) {
    axes[which[index]].crop_start = roi[index];
    axes[which[index]].crop_end = roi[which.size() + index];
  }
}

ResizeRule resize_rule_of(const Node& node) {
  ResizeRule rule;
  const size_t rank = node.input(0).type().dims.size();
  rule.axes.resize(rank);
  if (node.op() == "Upsample") {
    rule.options.interpolation = interpolation_of(node);
    const std::vector<float> scales = upsample_scales(node);
    for (size_t axis = 0; axis < rank; ++axis) rule.axes[axis].given_scale = scales[axis];
    return rule;
  }
  rule.options = resize_options(node);
  const std::vector<size_t> which = plugin::resized_axes(node, rank);
  const Value scales = node.input(node.version() < kFirstFullVersion ? 1 : 2);
  const bool has_scales = scales.is_present() && scales.type().elements() > 0;
  if (has_scales) {
    const std::vector<float> given = known_floats(scales, "scales");
    for (size_t index = 0; index < which.size(); ++index) {
      rule.axes[which[index]].given_scale = given[index];
    }
  } else {
    read_sizes(node, which, rule);
  }
  if (rule.options.coordinates == ResizeCoordinates::TfCropAndResize) {
    read_crop(node, which, rule.axes);
  }
  return rule;
}

// A rule in a layout.
struct ResizeWork {
  ResizeRule rule;
  StorageOrder order;
  int64_t element_bytes = 1;

  size_t rank() const { return rule.axes.size(); }
};

// The axes of a run in the order of memory; the lanes of a block are an axis of their own.
struct MemoryAxes {
  static constexpr size_t kMaxAxes = SeparablePlan::kMaxAxes;
  std::array<ResizeAxis, kMaxAxes> axes;
  std::array<int64_t, kMaxAxes> strides = {};  // of the input, in elements
  size_t count = 0;

  std::span<const ResizeAxis> used() const { return std::span(axes).first(count); }
};

MemoryAxes memory_axes(const ResizeWork& work, const Buffer& input, const Buffer& output) {
  MemoryAxes made;
  size_axes(work.rule, input.sizes(), output.sizes(), std::span(made.axes).first(work.rank()));
  const StorageAxes source = storage_axes(work.order, input);
  made.count = source.count;
  for (size_t axis = 0; axis < source.count; ++axis) made.strides[axis] = source[axis].stride;
  if (work.order.block > 1) {
    made.axes[1].input = made.axes[1].output = source[1].dim;
    made.axes[made.count - 1].input = made.axes[made.count - 1].output = work.order.block;
  }
  if (work.order.has_channels_last) {
    const auto end = static_cast<std::ptrdiff_t>(made.count);
    std::rotate(made.axes.begin() + 1, made.axes.begin() + 2, made.axes.begin() + end);
    std::rotate(made.strides.begin() + 1, made.strides.begin() + 2, made.strides.begin() + end);
  }
  return made;
}

// --- To the nearest element ----------------------------------------------------------------------

// The bytes of the tables of all axes that change, and of a plan with them. They depend on the
// sizes alone, because a kernel that was built for other sizes may get this workspace.
int64_t nearest_bytes(const ResizeWork& work, const Buffer& input, const Buffer& output) {
  int64_t longest = 0;
  int64_t entries = 0;
  const MemoryAxes axes = memory_axes(work, input, output);
  for (const ResizeAxis& axis : axes.used()) {
    if (is_unchanged(work.rule.options, axis)) continue;
    longest = std::max(longest, axis.output);
    entries += axis.output;
  }
  return entries * static_cast<int64_t>(sizeof(int64_t)) + TablePlan::memory_bytes(longest);
}

using NearestAxes = std::array<TableAxis, MemoryAxes::kMaxAxes>;

// The copy between these buffers. `axes` and `memory`, of nearest_bytes(), become part of it.
TablePlan nearest_plan(const ResizeWork& work, const Buffer& input, const Buffer& output,
                       NearestAxes& axes, void* memory) {
  const MemoryAxes resized = memory_axes(work, input, output);
  auto* table = static_cast<int64_t*>(memory);
  for (size_t index = 0; index < resized.count; ++index) {
    const ResizeAxis& axis = resized.axes[index];
    axes[index] = {.size = axis.output, .stride = resized.strides[index]};
    if (is_unchanged(work.rule.options, axis)) continue;
    write_nearest(work.rule.options, axis, {table, static_cast<size_t>(axis.output)});
    axes[index].table = std::exchange(table, table + axis.output);
  }
  return {std::span(axes).first(resized.count), work.element_bytes, table};
}

class NearestKernel : public plugin::Kernel {
 public:
  // `types`: of input and output, as proposed.
  NearestKernel(ResizeWork work, const std::vector<plugin::Type>& types) : work_(std::move(work)) {
    const std::vector<Buffer> proposed = buffers_of(types);
    if (proposed[1].elements() == 0) return;
    sizes_ = ProposedSizes(std::span(proposed).first(1), std::span(proposed).last(1));
    memory_.resize(static_cast<size_t>(nearest_bytes(work_, proposed[0], proposed[1])));
    plan_ = nearest_plan(work_, proposed[0], proposed[1], axes_, memory_.data());
  }

  // The plan points into this kernel.
  NearestKernel(const NearestKernel&) = delete;
  NearestKernel& operator=(const NearestKernel&) = delete;

  int64_t workspace_bytes() const override { return static_cast<int64_t>(memory_.size()); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    if (outputs[0].elements() == 0) return;
    // Only float32 is ever extrapolated; the other types ignore the eight bytes.
    const std::array<float, 2> fill = {work_.rule.options.extrapolation_value, 0};
    if (sizes_.are_those_of(inputs.first(1), outputs)) {
      return plan_.run(context, inputs[0].data, outputs[0].data, fill.data());
    }
    NearestAxes axes;
    nearest_plan(work_, inputs[0], outputs[0], axes, context.workspace())
        .run(context, inputs[0].data, outputs[0].data, fill.data());
  }

 private:
  ResizeWork work_;
  ProposedSizes sizes_;
  // For these sizes.
  std::vector<std::byte> memory_;
  NearestAxes axes_;
  TablePlan plan_;
};

// --- Interpolation -------------------------------------------------------------------------------

SeparablePlan separable_plan_of(const ResizeWork& work, const Buffer& input, const Buffer& output,
                                int64_t threads) {
  return separable_plan(work.rule.options, memory_axes(work, input, output).used(), threads);
}

// Whether the workspace has room for the tables, which are computed in each run with other sizes
// than those proposed.
bool has_small_tables(const SeparablePlan& plan) {
  constexpr int64_t kMaxTableBytes = int64_t{1} << 20;
  return plan.table_bytes() <= kMaxTableBytes;
}

// As nearest_bytes(), with the scratch memory.
int64_t separable_bytes(const SeparablePlan& plan) {
  return plan.scratch_bytes() + (has_small_tables(plan) ? plan.table_bytes() : 0);
}

class SeparableKernel : public plugin::Kernel {
 public:
  // `types`: of input and output, as proposed.
  SeparableKernel(ResizeWork work, const std::vector<plugin::Type>& types, int64_t threads)
      : work_(std::move(work)), threads_(threads) {
    const std::vector<Buffer> proposed = buffers_of(types);
    if (proposed[1].elements() == 0) return;
    sizes_ = ProposedSizes(std::span(proposed).first(1), std::span(proposed).last(1));
    plan_ = separable_plan_of(work_, proposed[0], proposed[1], threads);
    tables_.resize(static_cast<size_t>(plan_.table_bytes()));
    plan_.fill_tables(work_.rule.options, tables_.data());
  }

  // The plan points into this kernel.
  SeparableKernel(const SeparableKernel&) = delete;
  SeparableKernel& operator=(const SeparableKernel&) = delete;

  int64_t workspace_bytes() const override { return separable_bytes(plan_); }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    if (outputs[0].elements() == 0) return;
    if (sizes_.are_those_of(inputs.first(1), outputs))
      return resize(context, plan_, inputs, outputs);
    SeparablePlan plan = separable_plan_of(work_, inputs[0], outputs[0], threads_);
    // The tables are behind the scratch memory.
    auto* const workspace = static_cast<std::byte*>(context.workspace());
    plan.fill_tables(work_.rule.options, workspace + plan.scratch_bytes());
    resize(context, plan, inputs, outputs);
  }

 private:
  void resize(RunContext& context, const SeparablePlan& plan, std::span<const Buffer> inputs,
              std::span<const Buffer> outputs) const {
    run_separable(context, work_.rule.options, plan, inputs[0].as<const float>(),
                  outputs[0].as<float>(), static_cast<float*>(context.workspace()));
  }

  ResizeWork work_;
  int64_t threads_;
  ProposedSizes sizes_;
  // For these sizes.
  std::vector<std::byte> tables_;
  SeparablePlan plan_;
};

// --- Offering ------------------------------------------------------------------------------------

plugin::Candidate candidate_in(ProposeContext& context, const Node& node,
                               const std::string& layout) {
  plugin::Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.inputs = {{.value = node.input(0).id(), .layout = layout}};
  candidate.outputs = {{.value = node.output(0).id(), .layout = layout}};
  add_other_ports(node, candidate);
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.output(0).type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(0, bytes);
  return candidate;
}

// Whether the sizes are arguments. An axis with as many outputs as inputs has so for other sizes;
// but if the aspect ratio is kept, its scale depends on the sizes of other axes.
bool takes_sizes(const ResizeRule& rule) { return rule.aspect_ratio == AspectRatio::Stretch; }

std::vector<plugin::Type> resized_types(const Node& node) {
  return {node.input(0).type(), node.output(0).type()};
}

void offer_nearest(ProposeContext& context, const Node& node, const ResizeWork& work,
                   const std::string& layout) {
  const std::vector<plugin::Type> types = resized_types(node);
  plugin::Candidate candidate = candidate_in(context, node, layout);
  candidate.algorithm = "nearest";
  if (takes_sizes(work.rule)) candidate.built_for.emplace();
  if (types[1].elements() > 0) {
    const std::vector<Buffer> proposed = buffers_of(types);
    candidate.workspace_bytes = nearest_bytes(work, proposed[0], proposed[1]);
    candidate.workspace_for = [work](std::span<const Buffer> inputs,
                                     std::span<const Buffer> outputs) {
      return nearest_bytes(work, inputs[0], outputs[0]);
    };
  }
  candidate.build = [work, types](const plugin::BuildOptions&) {
    return std::make_unique<NearestKernel>(work, types);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

// Sets what a candidate needs for the sizes of the proposal, and for others.
void add_sizes(const ResizeWork& work, const std::vector<plugin::Type>& types, int64_t threads,
               plugin::Candidate& candidate) {
  // Larger tables are not worth their memory.
  constexpr int64_t kMaxTableEntries = int64_t{1} << 24;
  const std::vector<Buffer> proposed = buffers_of(types);
  const SeparablePlan plan = separable_plan_of(work, proposed[0], proposed[1], threads);
  if (plan.most_entries() > kMaxTableEntries) {
    throw plugin::Failure(TESSERA_UNSUPPORTED, "its table of weights would be too large: " +
                                                   std::to_string(plan.most_entries()) +
                                                   " entries");
  }
  candidate.workspace_bytes = separable_bytes(plan);
  if (!takes_sizes(work.rule) || !has_small_tables(plan)) return;
  candidate.built_for.emplace();
  candidate.workspace_for = [work, threads](std::span<const Buffer> inputs,
                                            std::span<const Buffer> outputs) -> int64_t {
    const SeparablePlan other = separable_plan_of(work, inputs[0], outputs[0], threads);
    return has_small_tables(other) ? separable_bytes(other) : -1;
  };
}

void offer_separable(ProposeContext& context, const Node& node, const ResizeWork& work,
                     const std::string& layout) {
  const std::vector<plugin::Type> types = resized_types(node);
  const int64_t threads = context.options().threads;
  plugin::Candidate candidate = candidate_in(context, node, layout);
  candidate.algorithm = "separable";
  if (types[1].elements() > 0) {
    add_sizes(work, types, threads, candidate);
  } else if (takes_sizes(work.rule)) {
    candidate.built_for.emplace();
  }
  candidate.build = [work, types, threads](const plugin::BuildOptions&) {
    return std::make_unique<SeparableKernel>(work, types, threads);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

void offer_resize(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type type = node.input(0).type();
  const ResizeRule rule = resize_rule_of(node);
  const bool is_nearest = rule.options.interpolation == Interpolation::Nearest;
  const bool is_cropped = rule.options.coordinates == ResizeCoordinates::TfCropAndResize;
  if (type.data_type != TESSERA_FLOAT32 && (!is_nearest || is_cropped)) {
    return context.refuse(node.id(), "interpolates and extrapolates float32 only");
  }
  // The lanes of a block are one more axis.
  if (type.dims.size() >= MemoryAxes::kMaxAxes) {
    return context.refuse(node.id(), "takes tensors of fewer axes only");
  }
  std::vector<ResizeAxis> axes(type.dims.size());
  size_axes(rule, type.dims, node.output(0).type().dims, axes);
  for (const std::string& layout : kSharedLayouts) {
    if (layout != TESSERA_LAYOUT_DEFAULT && !has_channels(type)) break;
    const ResizeWork work = {.rule = rule,
                             .order = storage_order(layout),
                             .element_bytes = plugin::element_bytes(type.data_type)};
    if (work.order.block > 1 && !is_unchanged(rule.options, axes[1])) continue;
    if (is_nearest) {
      offer_nearest(context, node, work, layout);
    } else {
      offer_separable(context, node, work, layout);
    }
  }
}

}  // namespace

void propose_resizes(ProposeContext& context) {
  context.for_each({"Resize", "Upsample"}, [&](const Node& node) { offer_resize(context, node); });
}

}  // namespace tessera::native
