// Runs one op on tensors: for constant folding, as the reference of comparisons, and to find output
// shapes that depend on data.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// The maximum number of elements of small integer tensors that shape arithmetic tracks.
inline constexpr int64_t kMaxShapeElements = 1024;

// The rule's input for a tensor whose elements are known; strings are not. An empty tensor is an
// omitted input.
InferInput infer_input(const Tensor& tensor);

// The types of all outputs of `node`. Checks the inputs against the schema first; throws what the
// rule throws. If all inputs are complete but the rule's result is not, that is a bug.
std::vector<InferOutput> infer(const Op& op, const Node& node, std::vector<InferInput> inputs);

struct InferAnswer {
  std::vector<InferOutput> outputs;
  // See InferContext::constants_read(). Other floating-point constants decide nothing: the rule
  // would give the same outputs.
  uint64_t constants_read = 0;
};

// infer(), for inputs whose element types were checked before: only sizes differ.
InferAnswer infer_again(const Op& op, const Node& node, std::span<const InferInput> inputs);

struct Answer {
  std::vector<InferOutput> outputs;
  // Whether more knowledge cannot change the answer: the rule asked for no unknown elements.
  bool is_final = false;
};

// infer(), and whether the answer is final.
Answer ask(const Op& op, const Node& node, std::vector<InferInput> inputs);

// Runs `node` on `inputs` (empty tensors if omitted) and returns its outputs in new storage; an
// output that the node omits is empty.
std::vector<Tensor> evaluate(const Op& op, const Node& node, std::span<const Tensor> inputs,
                             ThreadPool& pool);

// Runs the kernel on existing tensors. Throws Unsupported if the op has no kernel. `kept` is where
// what prepare_node() made stays for later calls; null: nowhere.
void run_kernel(const Op& op, const Node& node, std::span<const Tensor> inputs,
                std::span<Tensor> outputs, ThreadPool& pool,
                std::shared_ptr<const void>* kept = nullptr);

}  // namespace tessera::ops
