// GroupNorm and SkipGroupNorm: group normalisation in either layout of memory, after adding other
// inputs, and with an activation function.
#include <algorithm>
#include <cmath>

#include "ops/contrib/contrib.h"
#include "ops/domains.h"
#include "ops/elementwise/activation_functions.h"
#include "ops/normalization/normalize.h"

namespace tessera::ops {
namespace {

constexpr size_t kGroupSkip = 3;
constexpr size_t kGroupBias = 4;

bool is_channels_last(const Node& node) { return node.attributes.get_int("channels_last") != 0; }

int64_t check_group_attributes(const InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  const int64_t groups = attributes.get_int("groups");
  if (groups < 1) context.fail("expected 'groups' of at least 1, found " + std::to_string(groups));
  const int64_t function = attributes.get_int("activation");
  if (function != 0 && function != 1) {
    context.fail("expected 'activation' 0 (none) or 1 (SiLU), found " + std::to_string(function));
  }
  return groups;
}

// The skip has the shape of X, or one element for each channel of each batch item: [N, C], or X
// with 1 for each spatial axis.
void check_group_skip(const InferContext& context, const Shape& input, const Dim& channels) {
  const Shape* skip = context.shape(kGroupSkip);
  if (skip == nullptr) return;
  Shape per_channel(input.size(), Dim(1));
  per_channel.front() = input.front();
  (is_channels_last(context.node()) ? per_channel.back() : per_channel[1]) = channels;
  if (can_be_equal(*skip, {input.front(), channels}) || can_be_equal(*skip, per_channel)) return;
  check_shape(context, kGroupSkip, input);
}

void infer_group_norm(InferContext& context) {
  const int64_t groups = check_group_attributes(context);
  const std::optional<Shape>& shape = context.input(0).type.shape;
  context.set_output(0, context.element(0), shape);
  context.set_output(1, context.element(0), shape);
  if (!shape) return;
  check_rank(context, 0, 4);
  const Dim& channels = is_channels_last(context.node()) ? shape->back() : (*shape)[1];
  if (channels.is_known() && channels.value() % groups != 0) {
    context.fail_input(0, "expected channels in " + std::to_string(groups) +
                              " equal groups, found [" + text(*shape) + "]");
  }
  check_shape(context, 1, {channels});
  check_shape(context, 2, {channels});
  if (context.input_count() <= kGroupSkip) return;
  check_group_skip(context, *shape, channels);
  check_shape(context, kGroupBias, {channels});
}

// The elements of a group of channels of one batch item, as runs: either one of all channels for
// each position, or one of all positions for each channel.
struct GroupLayout {
  int64_t channels = 0;
  int64_t positions = 0;
  int64_t groups = 1;
  bool is_last = false;

  int64_t group_channels() const { return channels / groups; }

  // Calls visit(element, channel, step, length) for each run of row (batch item, group): its
  // first element and that element's channel, by which each element increases the channel, and
  // the number of elements.
  template <class Visit>
  void for_each_run(int64_t row, const Visit& visit) const {
    const int64_t item = row / groups;
    const int64_t first = row % groups * group_channels();
    if (is_last) {
      for (int64_t position = 0; position < positions; ++position) {
        visit((item * positions + position) * channels + first, first, 1, group_channels());
      }
    } else {
      for (int64_t channel = first; channel < first + group_channels(); ++channel) {
        visit((item * channels + channel) * positions, channel, 0, positions);
      }
    }
  }
};

GroupLayout layout_of(const KernelCall& call) {
  const auto dims = call.inputs[0].dims;
  GroupLayout layout;
  layout.is_last = is_channels_last(call.node);
  layout.channels = layout.is_last ? dims.back() : dims[1];
  layout.positions = element_count(dims) / dims[0] / layout.channels;
  layout.groups = call.node.attributes.get_int("groups");
  return layout;
}

// Reads X, plus the skip and the bias of its channel.
template <class T>
class SkipReader {
 public:
  SkipReader(const KernelCall& call, const GroupLayout& layout)
      : input_(call.inputs[0].as<T>().data()), bias_(&call.scratch) {
    if (!call.has_input(kGroupSkip)) return;
    skip_ = call.inputs[kGroupSkip].as<T>().data();
    const bool is_whole = call.inputs[kGroupSkip].elements == call.inputs[0].elements;
    item_elements_ = is_whole ? 0 : layout.channels * layout.positions;
    channels_ = layout.channels;
    if (call.has_input(kGroupBias)) bias_ = to_doubles(call.inputs[kGroupBias], call.scratch);
  }

  double at(int64_t element, int64_t channel) const {
    double value = to_double(input_[element]);
    if (skip_ == nullptr) return value;
    const int64_t place =
        item_elements_ == 0 ? element : element / item_elements_ * channels_ + channel;
    value += to_double(skip_[place]);
    return bias_.empty() ? value : value + bias_[static_cast<size_t>(channel)];
  }

 private:
  const T* input_;
  const T* skip_ = nullptr;
  int64_t item_elements_ = 0;  // if the skip has an element for each channel
  int64_t channels_ = 0;
  std::pmr::vector<double> bias_;
};

void run_group_norm(const KernelCall& call) {
  if (call.inputs[0].elements == 0) return;
  const GroupLayout layout = layout_of(call);
  const std::pmr::vector<double> scale = to_doubles(call.inputs[1], call.scratch);
  const std::pmr::vector<double> shift = to_doubles(call.inputs[2], call.scratch);
  const double epsilon = call.node.attributes.get_float("epsilon");
  const bool is_silu = call.node.attributes.get_int("activation") != 0;
  const int64_t length = layout.group_channels() * layout.positions;
  visit_floating(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const SkipReader<T> reader(call, layout);
    T* target = call.outputs[0].as<T>().data();
    T* sums = call.has_output(1) ? call.outputs[1].as<T>().data() : nullptr;
    const auto normalize_group = [&](int64_t row) {
      const auto visit_all = [&](const auto& visit) {
        layout.for_each_run(row, [&](int64_t first, int64_t channel, int64_t step, int64_t count) {
          for (int64_t index = 0; index < count; ++index) {
            visit(reader.at(first + index, channel + index * step));
          }
        });
      };
      const Moments moments = moments_of(visit_all, length);
      const double inverse = moments.inverse_deviation(epsilon);
      layout.for_each_run(row, [&](int64_t first, int64_t channel, int64_t step, int64_t count) {
        for (int64_t index = 0; index < count; ++index) {
          const auto at = static_cast<size_t>(channel + index * step);
          const double sum = reader.at(first + index, channel + index * step);
          const double result = (sum - moments.mean) * inverse * scale[at] + shift[at];
          if (sums != nullptr) sums[first + index] = from_double<T>(sum);
          target[first + index] =
              from_double<T>(is_silu ? result * activation::sigmoid(result) : result);
        }
      });
    };
    call.pool.parallel_for(call.inputs[0].dims[0] * layout.groups, row_grain(length),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t row = begin; row < end; ++row) normalize_group(row);
                           });
  });
}

Op group_norm_op(const char* name) {
  return {.name = name,
          .domain = kMicrosoftDomain,
          .versions = {1},
          .inputs = {{"X", "T"}, {"gamma", "M"}, {"beta", "M"}},
          .outputs = {{"Y", "T"}},
          .type_variables = {{"T", kFloatTypes}, {"M", kFloatTypes}},
          .attributes = {{"activation", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true},
                         {"channels_last", AttributeKind::Int, int64_t{1}},
                         {"epsilon", AttributeKind::Float, 1e-5F},
                         {"groups", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true}},
          .infer = infer_group_norm,
          .flops = normalization_flops,
          .kernel = run_group_norm};
}

}  // namespace

std::vector<Op> group_norm_ops() {
  Op skip = group_norm_op("SkipGroupNorm");
  skip.inputs.push_back({"skip", "T"});
  skip.inputs.push_back({"bias", "T", Arity::Optional});
  skip.outputs.push_back({"S", "T", Arity::Optional});
  return {group_norm_op("GroupNorm"), skip};
}

}  // namespace tessera::ops
