// The host's side of tessera_run_context: what kernels, conversions and packs run in.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory_resource>
#include <span>

#include "base/parallel.h"
#include "tessera/backend_abi.h"

namespace tessera {

// One call's context, or that of several calls in a row on one thread.
class RunContext {
 public:
  // Gives memory for an output of a size only known now; null where there is none.
  using AllocateOutput = std::function<void*(int32_t output, std::span<const int64_t> dims)>;

  // Both must outlive it. `scratch` is what reference kernels take temporary memory from.
  explicit RunContext(ThreadPool& pool,
                      std::pmr::memory_resource& scratch = *std::pmr::get_default_resource());
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  void set_workspace(void* memory, int64_t bytes);
  void set_random_seed(uint64_t seed) { face_.random_seed = seed; }
  void set_allocator(AllocateOutput allocate) { allocate_ = std::move(allocate); }

  // What is behind a context that went to the other side and came back.
  static ThreadPool& pool_of(tessera_run_context* context) { return of(context).pool_; }
  static std::pmr::memory_resource& scratch_of(tessera_run_context* context) {
    return of(context).scratch_;
  }

  // What the other side gets; valid as long as this.
  tessera_run_context* face() { return &face_; }

  // Whether a loop of the other side has failed since the last checked(). Nothing may be thrown
  // through the other side, and parallel_for has no result.
  bool has_failed() const { return failure_ != nullptr; }
  // The status with which a call on this context ended: `status`, or the failure of a loop, whose
  // reason is then written into `error`. Forgets that failure.
  int32_t checked(int32_t status, tessera_error* error) {
    return has_failed() ? take_failure(status, error) : status;
  }

 private:
  static RunContext& of(tessera_run_context* context);
  int32_t take_failure(int32_t status, tessera_error* error) noexcept;

  ThreadPool& pool_;
  std::pmr::memory_resource& scratch_;
  AllocateOutput allocate_;
  std::exception_ptr failure_;  // what a loop of the other side threw
  tessera_run_context face_ = {};
};

}  // namespace tessera
