// The host's side of tessera_run_context: the environment of kernels, conversions and packs.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory_resource>
#include <span>

#include "base/threads/parallel.h"
#include "tessera/backend_abi.h"

namespace tessera {

// The context of one call, or of several consecutive calls on one thread.
class RunContext {
 public:
  // Allocates an output whose size is known only now; null on failure.
  using AllocateOutput = std::function<void*(int32_t output, std::span<const int64_t> dims)>;

  // Both must outlive it. Reference kernels allocate temporary memory from `scratch`.
  explicit RunContext(ThreadPool& pool,
                      std::pmr::memory_resource& scratch = *std::pmr::get_default_resource());
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  // Of as many threads as the former one; must outlive this.
  void set_pool(ThreadPool& pool) { pool_ = &pool; }
  void set_workspace(void* memory, int64_t bytes);
  // For kernels of a device, which only enqueue. In a bulk, the caller synchronises after several.
  void set_queue(void* queue, bool is_bulk) {
    abi_.queue = queue;
    abi_.is_bulk = is_bulk ? 1 : 0;
  }
  void set_random_seed(uint64_t seed) { abi_.random_seed = seed; }
  void set_allocator(AllocateOutput allocate) { allocate_ = std::move(allocate); }

  // The pool and scratch memory of a context that a plug-in passes back.
  static ThreadPool& pool_of(tessera_run_context* context) { return *of(context).pool_; }
  static std::pmr::memory_resource& scratch_of(tessera_run_context* context) {
    return of(context).scratch_;
  }

  // The pointer for plug-ins, valid as long as this object.
  tessera_run_context* abi() { return &abi_; }

  // Whether a loop of the plug-in has failed since the last checked(). parallel_for has no result,
  // and no exception may pass through the plug-in.
  bool has_failed() const { return failure_ != nullptr; }
  // The final status of a call on this context: `status`, or the failure of a loop, whose reason is
  // then written to `error`. Clears that failure.
  int32_t checked(int32_t status, tessera_error* error) {
    return has_failed() ? take_failure(status, error) : status;
  }

 private:
  static RunContext& of(tessera_run_context* context);
  int32_t take_failure(int32_t status, tessera_error* error) noexcept;

  ThreadPool* pool_;
  std::pmr::memory_resource& scratch_;
  AllocateOutput allocate_;
  std::exception_ptr failure_;  // thrown by a loop of the plug-in
  tessera_run_context abi_ = {};
};

}  // namespace tessera
