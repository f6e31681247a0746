#include "evaluator.h"

#include <algorithm>
#include <utility>

namespace chess {
namespace {

[[noreturn]] void refuse_network(const std::string& expected, const std::string& found) {
  throw tessera::Error(tessera::ErrorKind::InvalidArgument, "the network",
                       "expected " + expected + ", found " + found);
}

// The elements of one position; 0 if that is not known.
int64_t elements_of(const tessera::ValueDescription& value) {
  if (!value.shape || value.shape->empty()) return 0;
  int64_t elements = 1;
  for (size_t axis = 1; axis < value.shape->size(); ++axis) {
    elements *= (*value.shape)[axis].value.value_or(0);
  }
  return elements;
}

// The first answer must not wait for measuring; if the environment switches measuring off, nothing
// is measured.
tessera::Optimize optimize_behind() {
  return tessera::optimize_of({}) == tessera::Optimize::Off ? tessera::Optimize::Off
                                                            : tessera::Optimize::Behind;
}

}  // namespace

NetworkNames find_names(const tessera::ModelDescription& model) {
  NetworkNames names;
  if (model.inputs.size() != 1 || elements_of(model.inputs[0]) != kInputElements) {
    refuse_network("one input of any number of positions with 112x8x8 elements",
                   model.inputs.empty() ? "none" : model.inputs[0].text);
  }
  names.planes = model.inputs[0].name;
  int64_t policy_elements = 0;
  for (const tessera::ValueDescription& output : model.outputs) {
    const int64_t elements = elements_of(output);
    if (elements == kOutcomes) names.outcomes = output.name;
    if (elements > policy_elements) {
      policy_elements = elements;
      names.policy = output.name;
    }
  }
  if (policy_elements < kSquares * kSquares || names.outcomes.empty()) {
    refuse_network("an output of 3 outcomes and one with a number for each of 4096 moves",
                   std::to_string(policy_elements) + " numbers in the largest output");
  }
  return names;
}

Evaluator::Evaluator(const tessera::Model& model, const NetworkNames& names, int64_t batch,
                     int threads)
    : executor_(model.bind({.shapes = {{names.planes, {batch, kPlanes, 8, 8}}},
                            .threads = threads,
                            .optimize = optimize_behind()})),
      input_(tessera::DataType::Float32, {batch, kPlanes, 8, 8}),
      planes_(input_.mutable_as<float>()),
      batch_(static_cast<size_t>(batch)) {
  // Rows without a position are computed, too.
  std::ranges::fill(planes_, 0.0F);
  executor_.bind_input(names.planes, input_);
  for (const tessera::ValueDescription& output : executor_.outputs()) {
    std::vector<int64_t> dims;
    for (const tessera::Dimension& dim : *output.shape) dims.push_back(*dim.value);
    tessera::Tensor& memory = outputs_.emplace_back(output.type, std::move(dims));
    executor_.bind_output(output.name, memory);
    if (output.name == names.policy) policy_ = memory.as<float>();
    if (output.name == names.outcomes) outcomes_ = memory.as<float>();
  }
}

std::vector<Answer> Evaluator::run(std::span<const Position> positions) {
  for (size_t row = 0; row < positions.size(); ++row) {
    positions[row].encode(planes_.subspan(row * kInputElements, kInputElements));
  }
  executor_.run_bound();
  const size_t moves = policy_.size() / batch_;
  std::vector<Answer> answers;
  for (size_t row = 0; row < positions.size(); ++row) {
    answers.push_back({.policy = policy_.subspan(row * moves, moves),
                       .outcomes = outcomes_.subspan(row * kOutcomes, kOutcomes)});
  }
  return answers;
}

EvaluatorPool::EvaluatorPool(std::vector<std::unique_ptr<Evaluator>> evaluators)
    : free_(std::move(evaluators)) {}

EvaluatorPool::Lease::Lease(EvaluatorPool& pool) : pool_(pool) {
  std::unique_lock lock(pool_.mutex_);
  pool_.is_free_.wait(lock, [&] { return !pool_.free_.empty(); });
  evaluator_ = std::move(pool_.free_.back());
  pool_.free_.pop_back();
}

EvaluatorPool::Lease::~Lease() {
  {
    const std::lock_guard lock(pool_.mutex_);
    pool_.free_.push_back(std::move(evaluator_));
  }
  pool_.is_free_.notify_one();
}

}  // namespace chess
