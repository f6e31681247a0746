// Describes the memory that an executor and its process keep.
#include <iterator>
#include <utility>

#include "api/options/backends_state.h"
#include "api/state/executor_state.h"
#include "api/state/model_state.h"
#include "backend/contract/blob_bounds.h"

namespace tessera {

std::vector<HeldCacheDescription> Backends::held_caches() const {
  Store& store = state_->store;
  HeldCacheDescription blobs{.name = "blobs", .max_count = kMaxBlobs, .max_bytes = kMaxBlobBytes};
  for (const auto& [key, bytes] : state_->services->blobs()) {
    ++blobs.count;
    blobs.bytes += std::ssize(bytes);
  }
  return {{.name = "plans",
           .count = static_cast<int64_t>(store.plan_count()),
           .max_count = ProcessPlanCache::kMaxPlans},
          {.name = "costs",
           .count = static_cast<int64_t>(store.prices().size()),
           .max_count = tuning::SharedCosts::kMaxCosts},
          std::move(blobs)};
}

HeldMemoryDescription Executor::memory() const {
  HeldMemoryDescription held{.plan_count = std::ssize(state().plans),
                             .max_plan_count = state().options.limits.most_shapes,
                             .arena_bytes = state().context.arena_bytes(),
                             .scratch_bytes = state().context.scratch().bytes(),
                             .pack_bytes = state().model->stored.packs().total_bytes(),
                             .caches = state().model->backends.held_caches()};
  for (const std::unique_ptr<ShapePlan>& plan : state().plans) {
    held.library_bytes += plan->description.library_bytes;
  }
  return held;
}

}  // namespace tessera
