// RandomNormal, RandomUniform, RandomNormalLike and RandomUniformLike: tensors of random numbers,
// of a shape that is an attribute or that of the input.
#include <array>
#include <string>

#include "ops/convert_element.h"
#include "ops/onnx_types.h"
#include "ops/op.h"
#include "ops/random/random_numbers.h"

namespace tessera::ops {
namespace {

void check_distribution(const InferContext& context) {
  const float* low = context.node().attributes.find_float("low");
  if (low == nullptr) return;
  const float high = context.node().attributes.get_float("high");
  if (!(*low <= high)) {
    context.fail("expected 'low' of at most 'high', found " + std::to_string(*low) + " and " +
                 std::to_string(high));
  }
}

void infer_random(InferContext& context) {
  check_distribution(context);
  const DataType type = element_type_of(context, "dtype", kFloatTypes);
  Shape shape;
  for (const int64_t dim : context.node().attributes.get_ints("shape")) {
    if (dim < 0) {
      context.fail("attribute 'shape': expected dimensions of at least 0, found " +
                   std::to_string(dim));
    }
    shape.emplace_back(dim);
  }
  context.set_output(0, type, std::move(shape));
}

void infer_random_like(InferContext& context) {
  check_distribution(context);
  DataType type = context.element(0);
  if (context.node().attributes.has("dtype")) {
    type = element_type_of(context, "dtype", kFloatTypes);
  } else if (type != DataType::Undefined && !kFloatTypes.contains(type)) {
    context.fail_input(0, "expected elements of " + kFloatTypes.text() +
                              ", because there is no attribute 'dtype', found " +
                              std::string(name(type)));
  }
  context.set_output(0, type, context.input(0).type.shape);
}

// Writes numbers_of(pair) to elements 2 * pair and 2 * pair + 1 of the output.
template <class NumbersOf>
void write_pairs(const KernelCall& call, const NumbersOf& numbers_of) {
  const MutableTensorView& output = call.outputs[0];
  visit_floating(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* target = output.as<T>().data();
    const int64_t pairs = (output.elements + 1) / 2;
    call.pool.parallel_for(pairs, kElementGrain / 2, [&](int64_t begin, int64_t end) {
      for (int64_t pair = begin; pair < end; ++pair) {
        const std::array<double, 2> numbers = numbers_of(pair);
        target[2 * pair] = from_double<T>(numbers[0]);
        if (2 * pair + 1 < output.elements) target[2 * pair + 1] = from_double<T>(numbers[1]);
      }
    });
  });
}

void run_random_normal(const KernelCall& call) {
  const uint64_t seed = float_seed(call.node);
  const double mean = call.node.attributes.get_float("mean");
  const double scale = call.node.attributes.get_float("scale");
  write_pairs(call, [&](int64_t pair) {
    const std::array<double, 2> numbers = normal_pair(seed, pair);
    return std::array{mean + scale * numbers[0], mean + scale * numbers[1]};
  });
}

void run_random_uniform(const KernelCall& call) {
  const uint64_t seed = float_seed(call.node);
  const double low = call.node.attributes.get_float("low");
  const double range = call.node.attributes.get_float("high") - low;
  write_pairs(call, [&](int64_t pair) {
    return std::array{low + range * uniform_number(seed, 2 * pair),
                      low + range * uniform_number(seed, 2 * pair + 1)};
  });
}

const std::vector<AttributeSchema>& normal_attributes() {
  static const std::vector<AttributeSchema> kAttributes = {{"mean", AttributeKind::Float, 0.0F},
                                                           {"scale", AttributeKind::Float, 1.0F}};
  return kAttributes;
}

const std::vector<AttributeSchema>& uniform_attributes() {
  static const std::vector<AttributeSchema> kAttributes = {{"high", AttributeKind::Float, 1.0F},
                                                           {"low", AttributeKind::Float, 0.0F}};
  return kAttributes;
}

Op random_op(const char* name, const std::vector<AttributeSchema>& parameters,
             ReferenceKernel kernel) {
  Op op = {.name = name,
           .versions = {1, 22},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"dtype", AttributeKind::Int, int64_t{1}},
                          {"seed", AttributeKind::Float, std::nullopt},
                          {"shape", AttributeKind::Ints, std::nullopt, 1, kAnyVersion, true}},
           .traits = kRandom,
           .infer = infer_random,
           .kernel = std::move(kernel)};
  op.attributes.insert(op.attributes.end(), parameters.begin(), parameters.end());
  return op;
}

Op random_like_op(const char* name, const std::vector<AttributeSchema>& parameters,
                  ReferenceKernel kernel) {
  Op op = {.name = name,
           .versions = {1, 22},
           .inputs = {{"input", "T1"}},
           .outputs = {{"output", "T2"}},
           .type_variables = {{"T1", kAllTypesAndStrings}, {"T2", kFloatTypes}},
           .attributes = {{"dtype", AttributeKind::Int, std::nullopt},
                          {"seed", AttributeKind::Float, std::nullopt}},
           .traits = kRandom,
           .infer = infer_random_like,
           .kernel = std::move(kernel)};
  op.attributes.insert(op.attributes.end(), parameters.begin(), parameters.end());
  return op;
}

}  // namespace

std::vector<Op> random_normal_ops() {
  return {random_op("RandomNormal", normal_attributes(), run_random_normal),
          random_op("RandomUniform", uniform_attributes(), run_random_uniform),
          random_like_op("RandomNormalLike", normal_attributes(), run_random_normal),
          random_like_op("RandomUniformLike", uniform_attributes(), run_random_uniform)};
}

}  // namespace tessera::ops
