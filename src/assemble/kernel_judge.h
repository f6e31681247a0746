// Judges compiled kernels. Nobody has tested the code that a compiler makes for one model, so each
// such kernel runs once on memory with guard bytes before anything else uses it, whether or not
// candidates are measured, and also if an earlier process stored it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/candidates.h"
#include "backend/contract/kernel.h"
#include "backend/layouts.h"
#include "base/threads/parallel.h"
#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera {

// Whether kernels of the candidate are judged: those of backends that compile while Tessera runs.
bool is_judged(const Candidate& candidate);

// Judges candidates of one graph. The objects that it refers to must outlive it.
class KernelJudge {
 public:
  // For `precision` see PlanOptions.
  KernelJudge(const Graph& graph, const LayoutTable& layouts, const ops::Registry& registry,
              int precision)
      : graph_(graph), layouts_(layouts), registry_(registry), precision_(precision) {}

  // Why the kernel must not be used, or "". It must write to its outputs only, and, if the
  // reference computes the group in a moment, give about the same elements as that. The tensors
  // have the real sizes; large ones are many mappings of few pages (verify/guarded_memory.h), and
  // their elements are not compared. `key` identifies the kernel as StoredKernels does: the
  // judgement is kept among the backend's blobs under it, so that each kernel is judged once on a
  // machine; nullopt: it is judged now. Kernels of more than one shape are judged for each.
  //
  // Not judged: large tensors of a kernel that is not TESSERA_CANDIDATE_COMPILED, whose inputs may
  // be indices, or whose device has memory of its own; kernels with packed or sparse inputs.
  // Any thread may call this. `pool` must be the one for which the kernel was built.
  std::string explain_fault(const Candidate& candidate, const std::shared_ptr<const Kernel>& kernel,
                            const std::optional<std::string>& key, ThreadPool& pool) const;

 private:
  const Graph& graph_;
  const LayoutTable& layouts_;
  const ops::Registry& registry_;
  int precision_;
};

}  // namespace tessera
