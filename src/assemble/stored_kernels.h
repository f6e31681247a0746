// Built kernels that libraries save as bytes, stored so that a later process need not build them.
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

// Called from any thread. Returns nullopt if nothing is stored under `key`.
using FindStoredKernel = std::function<std::optional<StoredKernel>(const std::string& key)>;

struct SavableKernel {
  std::string key;
  std::shared_ptr<const Kernel> kernel;
};

// Whether `name`, under which bytes are stored, is the key of a kernel.
bool is_kernel_key(const std::string& name);
// Whether `key` is the key of a kernel of `backend`.
bool is_kernel_of(const std::string& key, const std::string& backend);

// `registry` must outlive this.
class StoredKernels {
 public:
  // `find` may be null: nothing is stored. For `precision` and `nan` see PlanOptions.
  StoredKernels(const ops::Registry& registry, int threads, int precision, int nan,
                FindStoredKernel find)
      : registry_(registry),
        threads_(threads),
        precision_(precision),
        nan_(nan),
        find_(std::move(find)) {}

  // The stored kernel of the candidate; nullopt if there is none.
  std::optional<StoredKernel> find(const Candidate& candidate, const Graph& graph,
                                   const LayoutTable& layouts) const;

  // The kernels of a plan that can be stored. The key of each covers everything that it depends on:
  // the computation of its group, absorbed constants, the candidate, the exact build of its
  // library, threads, precision and NaN rule.
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
