// Built kernels that libraries save as bytes: other models of this process share them, and later
// processes load them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assemble/shared_kernels.h"
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

// The precision, NaN handling and accuracy that kernels may have; see PlanOptions.
struct KernelLatitude {
  int precision = TESSERA_PRECISION_FLOAT32;
  int nan = TESSERA_NAN_EXACT;
  int accuracy = TESSERA_ACCURACY_BOUNDED;
};

// `registry` must outlive this.
class StoredKernels {
 public:
  // `find` may be null: nothing is stored. `shared` has the kernels of all models whose build takes
  // a while; null: each model has its own. It must outlive this.
  StoredKernels(const ops::Registry& registry, int threads, const KernelLatitude& latitude,
                FindStoredKernel find, SharedKernels* shared = nullptr)
      : registry_(registry),
        threads_(threads),
        latitude_(latitude),
        find_(std::move(find)),
        shared_(shared) {}

  // The shared and the stored kernel of a candidate. Its key covers everything that the kernel
  // depends on: the computation of its group, absorbed constants, the candidate, the exact build of
  // its library, threads and latitude.
  struct Found {
    std::shared_ptr<SharedKernel> shared;  // null: it is not shared
    std::optional<StoredKernel> stored;
    std::optional<std::string> key;  // only if somebody needs it
  };
  Found find(const Candidate& candidate, const Graph& graph, const LayoutTable& layouts) const;

  int precision() const { return latitude_.precision; }

  // The kernels of a plan that can be stored, with their keys.
  std::vector<SavableKernel> savable(const BuiltPlan& built) const;

 private:
  std::optional<std::string> key_of(const Candidate& candidate, const Graph& graph,
                                    const LayoutTable& layouts) const;

  const ops::Registry& registry_;
  int threads_;
  KernelLatitude latitude_;
  FindStoredKernel find_;
  SharedKernels* shared_;
};

}  // namespace tessera
