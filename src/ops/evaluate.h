// Runs one op on tensors: what folds constants, what tests compare with, and what finds output
// shapes that depend on data.
#pragma once

#include <span>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// Small integer tensors whose elements take part in shape arithmetic have at most this many.
inline constexpr int64_t kMostShapeElements = 1024;

// What a rule is told of an input whose elements are known. An empty tensor is an omitted input.
InferInput infer_input(const Tensor& tensor);

// The types of all outputs of `node`. Checks the inputs against the schema first; errors as the
// rule throws them. A rule's result that is not complete although all inputs were is a bug.
std::vector<InferOutput> infer(const Op& op, const Node& node, std::vector<InferInput> inputs);

struct Answer {
  std::vector<InferOutput> outputs;
  // Whether the rule went only by what is known: it did not ask for elements that are not.
  bool is_final = false;
};

// The same, and whether it will stay so.
Answer ask(const Op& op, const Node& node, std::vector<InferInput> inputs);

// The outputs of `node` for `inputs` (empty tensors where omitted), in new storage; empty where the
// node leaves an output out.
std::vector<Tensor> evaluate(const Op& op, const Node& node, std::span<const Tensor> inputs,
                             ThreadPool& pool);

// Runs the kernel on tensors that exist already. Throws Unsupported where the op has none.
void run_kernel(const Op& op, const Node& node, std::span<const Tensor> inputs,
                std::span<Tensor> outputs, ThreadPool& pool);

}  // namespace tessera::ops
