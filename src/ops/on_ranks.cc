#include "ops/on_ranks.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ops/evaluate.h"

namespace tessera::ops {
namespace {

// All different strings, in order. Found by hashing, because most strings of large tensors are
// repeated.
class Ranks {
 public:
  explicit Ranks(std::span<const Tensor> tensors) : ranks_{{"", 0}} {
    for (const Tensor& tensor : tensors) {
      if (tensor.type() != DataType::String) continue;
      for (const std::string& text : tensor.as<std::string>()) ranks_.try_emplace(text, 0);
    }
    sorted_.reserve(ranks_.size());
    for (const auto& [text, rank] : ranks_) sorted_.push_back(text);
    std::ranges::sort(sorted_);
    for (size_t rank = 0; rank < sorted_.size(); ++rank) {
      ranks_.at(sorted_[rank]) = static_cast<int64_t>(rank);
    }
  }

  Tensor ranks_of(const Tensor& strings) const {
    Tensor ranks(DataType::Int64, strings.dims());
    std::ranges::transform(strings.as<std::string>(), ranks.mutable_as<int64_t>().begin(),
                           [&](std::string_view text) { return ranks_.at(text); });
    return ranks;
  }

  Tensor strings_of(const Tensor& ranks) const {
    Tensor strings(DataType::String, ranks.dims());
    std::ranges::transform(
        ranks.as<int64_t>(), strings.mutable_as<std::string>().begin(),
        [&](int64_t rank) { return std::string(sorted_[static_cast<size_t>(rank)]); });
    return strings;
  }

 private:
  std::unordered_map<std::string_view, int64_t> ranks_;
  std::vector<std::string_view> sorted_;
};

}  // namespace

void run_on_ranks(const Op& op, const ValueCall& call) {
  std::vector<InferInput> known;
  for (const Tensor& input : call.inputs) known.push_back(infer_input(input));
  const std::vector<InferOutput> types = infer(op, call.node, std::move(known));

  const Ranks ranks(call.inputs);
  std::vector<Tensor> inputs;
  for (const Tensor& input : call.inputs) {
    inputs.push_back(input.type() == DataType::String ? ranks.ranks_of(input) : input);
  }
  ThreadPool serial(1);
  std::vector<Tensor> outputs = evaluate(op, call.node, inputs, serial);
  for (size_t index = 0; index < outputs.size(); ++index) {
    const bool is_strings = types[index].type.element == DataType::String;
    if (is_strings && !outputs[index].is_empty()) outputs[index] = ranks.strings_of(outputs[index]);
    call.outputs[index] = std::move(outputs[index]);
  }
}

}  // namespace tessera::ops
