// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss: how improbable the right class of each
// sample is, by scores of all classes or by the logarithms of their probabilities. The classes are
// axis 1, and all other axes count samples.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ops/check_shape.h"
#include "ops/compensated_sum.h"
#include "ops/convert_element.h"
#include "ops/index_reader.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

constexpr size_t kClasses = 1;
constexpr size_t kWeights = 2;

void infer_loss(InferContext& context) {
  const std::string& reduction = context.node().attributes.get_string("reduction");
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    context.fail("attribute 'reduction': expected 'none', 'sum' or 'mean', found '" + reduction +
                 "'");
  }
  const Shape* scores = context.shape(0);
  context.set_output(1, context.element(0), context.input(0).type.shape);
  std::optional<Shape> samples = context.input(kClasses).type.shape;
  if (scores != nullptr) {
    if (scores->size() < 2) {
      context.fail_input(0, "expected samples and classes, found [" + text(*scores) + "]");
    }
    check_shape(context, kWeights, {(*scores)[1]});
    Shape expected = *scores;
    expected.erase(expected.begin() + 1);
    check_shape(context, kClasses, expected);
    if (!samples || !is_known(*samples)) samples = expected;
  }
  context.set_output(0, context.element(0), reduction == "none" ? samples : Shape{});
}

// A score of each class for samples that lie `positions` together in each of `items` blocks.
struct Samples {
  int64_t items = 0;
  int64_t classes = 0;
  int64_t positions = 1;
  std::optional<int64_t> ignored = std::nullopt;  // a class whose samples do not count

  int64_t count() const { return items * positions; }
  // The score of the first class of a sample; those of the others follow, `positions` apart.
  int64_t first(int64_t sample) const {
    return sample / positions * classes * positions + sample % positions;
  }
};

Samples samples_of(const KernelCall& call) {
  const auto dims = call.inputs[0].dims;
  Samples samples = {
      .items = dims[0], .classes = dims[1], .positions = element_count(dims.subspan(2))};
  const int64_t* const ignored = call.node.attributes.find_int("ignore_index");
  if (ignored != nullptr) samples.ignored = *ignored;
  return samples;
}

// The class of a sample; -1 if it is ignored. fail()s if there is no such class.
int64_t class_of(const KernelCall& call, const Samples& samples, int64_t sample) {
  const int64_t found = integer_at(call.inputs[kClasses], sample);
  if (found == samples.ignored) return -1;
  if (found < 0 || found >= samples.classes) {
    call.fail("expected classes in [0, " + std::to_string(samples.classes) +
              ") or attribute 'ignore_index', found " + std::to_string(found));
  }
  return found;
}

// log(sum(exp(score))) of the scores of one sample, `stride` apart.
template <class T>
double log_of_sum(const T* scores, int64_t count, int64_t stride) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t index = 0; index < count; ++index) {
    largest = std::max(largest, to_double(scores[index * stride]));
  }
  CompensatedSum powers;
  for (int64_t index = 0; index < count; ++index) {
    powers.add(std::exp(to_double(scores[index * stride]) - largest));
  }
  return largest + std::log(powers.value());
}

// Stores the losses, or their sum or mean: that is the sum over the sum of the weights.
void reduce_losses(const KernelCall& call, std::span<const double> losses,
                   std::span<const double> weights) {
  const std::string& reduction = call.node.attributes.get_string("reduction");
  if (reduction == "none") return store_doubles(losses, call.outputs[0]);
  CompensatedSum sum;
  CompensatedSum total;
  for (const double loss : losses) sum.add(loss);
  for (const double weight : weights) total.add(weight);
  const double result = reduction == "sum" ? sum.value() : sum.value() / total.value();
  store_doubles(std::span(&result, 1), call.outputs[0]);
}

template <bool kHasSoftmax>
void run_loss(const KernelCall& call) {
  const Samples samples = samples_of(call);
  const auto count = static_cast<size_t>(samples.count());
  std::pmr::vector<double> losses(count, &call.scratch);
  std::pmr::vector<double> weights(count, &call.scratch);
  const std::pmr::vector<double> given = call.has_input(kWeights)
                                             ? to_doubles(call.inputs[kWeights], call.scratch)
                                             : std::pmr::vector<double>(&call.scratch);
  visit_floating(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* scores = call.inputs[0].as<T>().data();
    T* logs = call.has_output(1) ? call.outputs[1].as<T>().data() : nullptr;
    const auto compute = [&](int64_t sample) {
      const int64_t first = samples.first(sample);
      const int64_t wanted = class_of(call, samples, sample);
      if (!kHasSoftmax && wanted < 0) return;
      const double shift =
          kHasSoftmax ? log_of_sum(scores + first, samples.classes, samples.positions) : 0.0;
      for (int64_t index = 0; logs != nullptr && index < samples.classes; ++index) {
        const int64_t place = first + index * samples.positions;
        logs[place] = from_double<T>(to_double(scores[place]) - shift);
      }
      if (wanted < 0) return;
      const double weight = given.empty() ? 1.0 : given[static_cast<size_t>(wanted)];
      const double score = to_double(scores[first + wanted * samples.positions]);
      weights[static_cast<size_t>(sample)] = weight;
      losses[static_cast<size_t>(sample)] = (shift - score) * weight;
    };
    const int64_t grain = kElementGrain / (samples.classes + 1) + 1;
    call.pool.parallel_for(samples.count(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t sample = begin; sample < end; ++sample) compute(sample);
    });
  });
  reduce_losses(call, losses, weights);
}

Op loss_op(const char* name, std::vector<int> versions, const char* scores, const char* classes,
           const char* weights, const char* output) {
  return {.name = name,
          .versions = std::move(versions),
          .inputs = {{scores, "T"}, {classes, "Tind"}, {weights, "T", Arity::Optional}},
          .outputs = {{output, "T"}},
          .type_variables = {{"T", kFloatTypes}, {"Tind", kIndexTypes}},
          .attributes = {{"ignore_index", AttributeKind::Int, std::nullopt},
                         {"reduction", AttributeKind::String, std::string("mean")}},
          .infer = infer_loss};
}

}  // namespace

std::vector<Op> softmax_cross_entropy_loss_ops() {
  Op likelihood =
      loss_op("NegativeLogLikelihoodLoss", {12, 13, 22}, "input", "target", "weight", "loss");
  likelihood.kernel = run_loss<false>;
  Op entropy =
      loss_op("SoftmaxCrossEntropyLoss", {12, 13}, "scores", "labels", "weights", "output");
  entropy.outputs.push_back({"log_prob", "T", Arity::Optional});
  entropy.flops = flops_per_input;
  entropy.kernel = run_loss<true>;
  return {likelihood, entropy};
}

}  // namespace tessera::ops
