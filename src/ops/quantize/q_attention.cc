// QAttention of com.microsoft: self-attention whose input and weights are bytes. From their
// product on, all numbers are real.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <algorithm>
#include <cmath>
#include <string>

#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/matmul/dense_operand.h"
#include "ops/quantize/integer_product.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

enum AttendedInput : size_t {
  kAttendedInput,
  kAttendedWeight,
  kAttendedBias,
  kAttendedScale,
  kAttendedWeightScale,
  kAttendedMask,
  kAttendedZero,
  kAttendedWeightZero,
  kAttendedPast,
};

// --- Type rule -----------------------------------------------------------------------------------

const Shape* attended_shape(const InferContext& context, size_t index, size_t rank) {
  const Shape* const shape = context.has_input(index) ? context.shape(index) : nullptr;
  if (shape != nullptr && shape->size() != rank) {
    context.fail_input(
        index, "expected rank " + std::to_string(rank) + ", found shape [" + text(*shape) + "]");
  }
  return shape;
}

int64_t checked_heads(const InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  const int64_t heads = attributes.get_int("num_heads");
  if (heads < 1) {
    context.fail("attribute 'num_heads': expected at least 1, found " + std::to_string(heads));
  }
  for (const char* attribute : {"do_rotary", "past_present_share_buffer"}) {
    const int64_t* const given = attributes.find_int(attribute);
    if (given != nullptr && *given != 0) {
      context.fail_unsupported("attribute '" + std::string(attribute) + "' has no kernels, found " +
                               std::to_string(*given));
    }
  }
  return heads;
}

// The masks of ONNX Runtime: lengths [batch], ends and starts [2 * batch], or a choice of keys for
// each batch item, [batch, keys], or for each query, [batch, queries, keys]. One element for each
// batch item, [batch or 1, 1], says nothing.
void check_attended_mask(const InferContext& context, const Shape& input, const Dim& keys) {
  const Shape* const mask =
      context.has_input(kAttendedMask) ? context.shape(kAttendedMask) : nullptr;
  if (mask == nullptr) return;
  const Dim& batch = input[0];
  if (mask->size() == 4) {
    context.fail_unsupported("masks of four axes have no kernels, found [" + text(*mask) + "]");
  }
  const Shape allowed[] = {{batch}, {multiply(batch, 2)},   {batch, keys}, {batch, 1},
                           {1, 1},  {batch, input[1], keys}};
  const auto fits = [&](const Shape& shape) { return can_be_equal(*mask, shape); };
  if (std::ranges::any_of(allowed, fits)) return;
  context.fail_input(kAttendedMask, "expected shape [" + batch.text() + "], twice as many, [" +
                                        text(allowed[2]) + "] or [" + text(allowed[5]) +
                                        "], found [" + text(*mask) + "]");
}

// The hidden size: a third of the columns of the weights.
std::optional<Dim> attended_size(const InferContext& context, int64_t heads) {
  const Shape* const weights = attended_shape(context, kAttendedWeight, 2);
  if (weights == nullptr) return std::nullopt;
  check_shape(context, kAttendedBias, {weights->back()});
  check_per_axis(context, kAttendedWeightScale, weights, 1);
  check_per_axis(context, kAttendedWeightZero, weights, 1);
  if (!weights->back().is_known()) return std::nullopt;
  const int64_t columns = weights->back().value();
  if (columns % 3 != 0 || columns / 3 % heads != 0) {
    context.fail_input(kAttendedWeight, "expected columns for queries, keys and values of " +
                                            std::to_string(heads) + " heads, found shape [" +
                                            text(*weights) + "]");
  }
  return columns / 3;
}

void infer_quantized_attention(InferContext& context) {
  const int64_t heads = checked_heads(context);
  check_tensor_scale(context, kAttendedScale, kAttendedZero);
  const DataType type = context.element(kAttendedBias);
  context.set_output(0, type);
  context.set_output(1, type);
  const std::optional<Dim> hidden = attended_size(context, heads);
  const Shape* const input = attended_shape(context, kAttendedInput, 3);
  const Shape* const past = attended_shape(context, kAttendedPast, 5);
  if (input == nullptr) return;
  if (context.shape(kAttendedWeight) != nullptr) {
    check_shape(context, kAttendedWeight, {input->back(), context.shape(kAttendedWeight)->back()});
  }
  if (!hidden) return;
  const Dim size = hidden->value() / heads;
  const bool is_past_unknown = context.has_input(kAttendedPast) && past == nullptr;
  context.set_output(0, type, Shape{(*input)[0], (*input)[1], *hidden});
  if (is_past_unknown) return;
  if (past != nullptr)
    check_shape(context, kAttendedPast, {2, (*input)[0], heads, (*past)[3], size});
  const Dim keys = past == nullptr ? (*input)[1] : add((*past)[3], (*input)[1]);
  check_attended_mask(context, *input, keys);
  context.set_output(1, type, Shape{2, (*input)[0], heads, keys, size});
}

// --- Kernel --------------------------------------------------------------------------------------

struct AttendedSizes {
  int64_t batch = 0;
  int64_t queries = 0;
  int64_t past = 0;
  int64_t keys = 0;
  int64_t heads = 0;
  int64_t size = 0;  // of a head

  int64_t hidden() const { return heads * size; }
};

AttendedSizes attended_sizes_of(const KernelCall& call) {
  const std::span<const int64_t> input = call.inputs[kAttendedInput].dims;
  AttendedSizes sizes = {
      .batch = input[0], .queries = input[1], .heads = call.node.attributes.get_int("num_heads")};
  sizes.size = call.inputs[kAttendedWeight].dims[1] / 3 / sizes.heads;
  if (call.has_input(kAttendedPast)) sizes.past = call.inputs[kAttendedPast].dims[3];
  sizes.keys = sizes.past + sizes.queries;
  return sizes;
}

// Queries, keys and values of all tokens: [batch * queries, 3 * hidden].
std::pmr::vector<double> attended_projection(const KernelCall& call, const AttendedSizes& sizes) {
  const int64_t rows = sizes.batch * sizes.queries;
  const int64_t columns = 3 * sizes.hidden();
  const int64_t depth = call.inputs[kAttendedInput].dims[2];
  const std::pmr::vector<double> input = centred(call, kAttendedInput, kAttendedZero, std::nullopt);
  const std::pmr::vector<double> weights = centred(call, kAttendedWeight, kAttendedWeightZero, 1);
  std::pmr::vector<double> result(static_cast<size_t>(rows * columns), &call.scratch);
  const ReadDense<double, double> read_input = {input.data(), depth};
  const ReadDense<double, double> read_weights = {weights.data(), columns};
  const double scale = to_doubles(call.inputs[kAttendedScale], call.scratch)[0];
  const std::pmr::vector<double> scales =
      to_doubles(call.inputs[kAttendedWeightScale], call.scratch);
  const std::pmr::vector<double> bias = to_doubles(call.inputs[kAttendedBias], call.scratch);
  const auto store = [&](int64_t, int64_t row, int64_t first, int64_t count, const double* sums) {
    for (int64_t index = 0; index < count; ++index) {
      const auto column = static_cast<size_t>(first + index);
      const double factor = scale * scales[scales.size() == 1 ? 0 : column];
      result[static_cast<size_t>(row * columns) + column] = sums[index] * factor + bias[column];
    }
  };
  multiply_matrices<double>(call, {.rows = rows,
                                   .columns = columns,
                                   .depth = depth,
                                   .left = {read_input, true},
                                   .right = {read_weights, false},
                                   .store = store});
  return result;
}

// Keys (part 0) and values (part 1), the past ones first: [2, batch, heads, keys, size].
std::pmr::vector<double> attended_states(const KernelCall& call, const AttendedSizes& sizes,
                                         std::span<const double> projection) {
  const int64_t lines = 2 * sizes.batch * sizes.heads;
  std::pmr::vector<double> states(static_cast<size_t>(lines * sizes.keys * sizes.size),
                                  &call.scratch);
  const std::pmr::vector<double> past = sizes.past > 0
                                            ? to_doubles(call.inputs[kAttendedPast], call.scratch)
                                            : std::pmr::vector<double>(&call.scratch);
  const int64_t past_length = sizes.past * sizes.size;
  for (int64_t line = 0; line < lines; ++line) {
    double* target = states.data() + line * sizes.keys * sizes.size;
    target = std::copy_n(past.data() + line * past_length, past_length, target);
    const int64_t part = line / (sizes.batch * sizes.heads);
    const int64_t item = line / sizes.heads % sizes.batch;
    for (int64_t query = 0; query < sizes.queries; ++query) {
      const int64_t row = (item * sizes.queries + query) * 3 + 1 + part;
      const double* const source =
          projection.data() + row * sizes.hidden() + line % sizes.heads * sizes.size;
      target = std::copy_n(source, sizes.size, target);
    }
  }
  return states;
}

// Adds the mask to a row of scores, those of query `query` of batch item `item`.
void mask_scores(const KernelCall& call, const AttendedSizes& sizes, int64_t item, int64_t query,
                 std::span<double> scores) {
  const Attributes& attributes = call.node.attributes;
  constexpr float kDefaultFilter = -10000;
  const float* const given = attributes.find_float("mask_filter_value");
  const double filter = given == nullptr ? kDefaultFilter : *given;
  if (call.has_input(kAttendedMask)) {
    const TensorView& mask = call.inputs[kAttendedMask];
    const int32_t* const elements = mask.as<int32_t>().data();
    if (mask.rank() == 1) {
      const int64_t end = elements[item];
      const int64_t start = mask.dims[0] == sizes.batch ? 0 : elements[sizes.batch + item];
      for (int64_t key = 0; key < sizes.keys; ++key) {
        if (key >= end || key < start) scores[static_cast<size_t>(key)] += filter;
      }
    } else if (mask.dims.back() == sizes.keys &&
               (mask.rank() == 3 || mask.dims[0] == sizes.batch)) {
      const int64_t row = mask.rank() == 3 ? item * sizes.queries + query : item;
      for (int64_t key = 0; key < sizes.keys; ++key) {
        if (elements[row * sizes.keys + key] <= 0) scores[static_cast<size_t>(key)] += filter;
      }
    }
  }
  if (attributes.get_int("unidirectional") == 0) return;
  // Later keys have no influence, whatever the other mask says.
  for (int64_t key = sizes.past + query + 1; key < sizes.keys; ++key) {
    scores[static_cast<size_t>(key)] = -std::numeric_limits<double>::infinity();
  }
}

void take_softmax(std::span<double> scores) {
  const double largest = *std::ranges::max_element(scores);
  double sum = 0;
  for (double& score : scores) {
    score = std::exp(score - largest);
    sum += score;
  }
  for (double& score : scores) score /= sum;
}

// The softmax of the scores of all keys: [batch * heads, queries, keys].
std::pmr::vector<double> attended_weights(const KernelCall& call, const AttendedSizes& sizes,
                                          std::span<const double> projection,
                                          std::span<const double> keys) {
  const int64_t lines = sizes.batch * sizes.heads;
  std::pmr::vector<double> scores(static_cast<size_t>(lines * sizes.queries * sizes.keys),
                                  &call.scratch);
  const float* const given = call.node.attributes.find_float("scale");
  const double scale = given == nullptr || *given == 0
                           ? 1 / std::sqrt(static_cast<double>(sizes.size))
                           : double{*given};
  const auto read_queries = [&](int64_t line, int64_t query, int64_t begin, int64_t count,
                                double* target) {
    const int64_t row = line / sizes.heads * sizes.queries + query;
    std::copy_n(
        projection.data() + row * 3 * sizes.hidden() + line % sizes.heads * sizes.size + begin,
        count, target);
  };
  const auto read_keys = [&](int64_t line, int64_t key, int64_t begin, int64_t count,
                             double* target) {
    std::copy_n(keys.data() + (line * sizes.keys + key) * sizes.size + begin, count, target);
  };
  const auto store = [&](int64_t line, int64_t row, int64_t first, int64_t count,
                         const double* sums) {
    double* const target = scores.data() + (line * sizes.queries + row) * sizes.keys + first;
    for (int64_t index = 0; index < count; ++index) target[index] = sums[index] * scale;
  };
  multiply_matrices<double>(call, {.count = lines,
                                   .rows = sizes.queries,
                                   .columns = sizes.keys,
                                   .depth = sizes.size,
                                   .left = {read_queries, true},
                                   .right = {read_keys, true},
                                   .store = store});
  const int64_t grain = 1024 / sizes.keys + 1;
  call.pool.parallel_for(lines * sizes.queries, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto keys_of_row = static_cast<size_t>(sizes.keys);
      const std::span<double> line =
          std::span(scores).subspan(static_cast<size_t>(row) * keys_of_row, keys_of_row);
      mask_scores(call, sizes, row / sizes.queries / sizes.heads, row % sizes.queries, line);
      take_softmax(line);
    }
  });
  return scores;
}

void run_quantized_attention(const KernelCall& call) {
  const AttendedSizes sizes = attended_sizes_of(call);
  const std::pmr::vector<double> projection = attended_projection(call, sizes);
  const std::pmr::vector<double> states = attended_states(call, sizes, projection);
  if (call.has_output(1)) store_doubles(states, call.outputs[1]);
  if (!call.has_output(0) || call.outputs[0].elements == 0) return;
  const std::span<const double> keys = std::span(states).first(states.size() / 2);
  const std::pmr::vector<double> weights = attended_weights(call, sizes, projection, keys);
  const double* const values = states.data() + states.size() / 2;
  visit_floating(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const output = call.outputs[0].as<T>().data();
    const auto read_weights = [&](int64_t line, int64_t query, int64_t begin, int64_t count,
                                  double* target) {
      std::copy_n(weights.data() + (line * sizes.queries + query) * sizes.keys + begin, count,
                  target);
    };
    const auto read_values = [&](int64_t line, int64_t key, int64_t begin, int64_t count,
                                 double* target) {
      std::copy_n(values + (line * sizes.keys + key) * sizes.size + begin, count, target);
    };
    const auto store = [&](int64_t line, int64_t query, int64_t first, int64_t count,
                           const double* sums) {
      const int64_t row = line / sizes.heads * sizes.queries + query;
      std::transform(sums, sums + count,
                     output + row * sizes.hidden() + line % sizes.heads * sizes.size + first,
                     from_double<T>);
    };
    multiply_matrices<double>(call, {.count = sizes.batch * sizes.heads,
                                     .rows = sizes.queries,
                                     .columns = sizes.size,
                                     .depth = sizes.keys,
                                     .left = {read_weights, true},
                                     .right = {read_values, false},
                                     .store = store});
  });
}

int64_t quantized_attention_flops(const Node& node, std::span<const Type> inputs,
                                  std::span<const Type> outputs) {
  const Dim columns = multiply((*inputs[kAttendedWeight].shape)[1], 2);
  const Dim projection = multiply(flops_per_input(node, inputs, outputs), columns);
  const Dim keys = (*inputs[kAttendedInput].shape)[1];
  return add(projection, multiply(flops_per_output(node, inputs, outputs), multiply(keys, 4)))
      .value();
}

}  // namespace

std::vector<Op> q_attention_ops() {
  return {{.name = "QAttention",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"input", "T1"},
                      {"weight", "T2"},
                      {"bias", "T3"},
                      {"input_scale", "T3"},
                      {"weight_scale", "T3"},
                      {"mask_index", "T4", Arity::Optional},
                      {"input_zero_point", "T1", Arity::Optional},
                      {"weight_zero_point", "T2", Arity::Optional},
                      {"past", "T3", Arity::Optional}},
           .outputs = {{"output", "T3"}, {"present", "T3", Arity::Optional}},
           .type_variables = {{"T1", kByteTypes},
                              {"T2", kByteTypes},
                              {"T3", {DataType::Float32, DataType::Float16}},
                              {"T4", {DataType::Int32}}},
           .attributes = {{"do_rotary", AttributeKind::Int, std::nullopt},
                          {"mask_filter_value", AttributeKind::Float, std::nullopt},
                          {"num_heads", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true},
                          {"past_present_share_buffer", AttributeKind::Int, std::nullopt},
                          {"scale", AttributeKind::Float, std::nullopt},
                          {"unidirectional", AttributeKind::Int, int64_t{0}}},
           .infer = infer_quantized_attention,
           .flops = quantized_attention_flops,
           .kernel = run_quantized_attention}};
}

}  // namespace tessera::ops
