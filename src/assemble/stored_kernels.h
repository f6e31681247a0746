// Built kernels that libraries give as bytes: kept for the next process, which then need not build
// them anew.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "engine/built_plan.h"
#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera {

struct StoredKernel {
  std::shared_ptr<const void> bytes;
  int64_t size = 0;
};

// From any thread; nullopt where there is none under this key.
using FindStoredKernel = std::function<std::optional<StoredKernel>(const std::string& key)>;

struct SavableKernel {
  std::string key;
  std::shared_ptr<const Kernel> kernel;
};

// Whether a name among stored bytes is a kernel's key.
bool is_kernel_key(const std::string& name);
// And whose.
bool is_kernel_of(const std::string& key, const std::string& backend);

// `registry` must outlive it.
class StoredKernels {
 public:
  // `find` may be null: nothing is stored.
  // `precision` and `nan` as PlanOptions has them.
  StoredKernels(const ops::Registry& registry, int threads, int precision, int nan,
                FindStoredKernel find)
      : registry_(registry),
        threads_(threads),
        precision_(precision),
        nan_(nan),
        find_(std::move(find)) {}

  // What was stored of the candidate's kernel.
  std::optional<StoredKernel> find(const Candidate& candidate, const Graph& graph,
                                   const LayoutTable& layouts) const;

  // Those of a plan that can be stored, each under all that it depends on: what its group computes,
  // the constants that became part of it, its candidate, its library to the very build, threads.
  std::vector<SavableKernel> savable(const BuiltPlan& built) const;

 private:
  std::optional<std::string> key_of(const Candidate& candidate, const Graph& graph,
                                    const LayoutTable& layouts) const;

  const ops::Registry& registry_;
  int threads_;
  int precision_;
  int nan_;
  FindStoredKernel find_;
};

}  // namespace tessera
