#include "backend/contract/run_context.h"

#include <exception>
#include <utility>

#include "backend/contract/status.h"

namespace tessera {

RunContext::RunContext(ThreadPool& pool, std::pmr::memory_resource& scratch)
    : pool_(&pool), scratch_(scratch) {
  abi_.struct_size = sizeof(abi_);
  abi_.threads = pool.threads();
  abi_.host_state = this;
  abi_.parallel_for = [](tessera_run_context* context, int64_t count, int64_t grain,
                         void (*body)(void*, int64_t, int64_t), void* argument) {
    try {
      of(context).pool_->parallel_for(
          count, grain, [&](int64_t begin, int64_t end) { body(argument, begin, end); });
    } catch (...) {
      of(context).failure_ = std::current_exception();
    }
  };
  abi_.allocate_output = [](tessera_run_context* context, int32_t output, int32_t rank,
                            const int64_t* dims) -> void* {
    const AllocateOutput& allocate = of(context).allocate_;
    if (!allocate || rank < 0) return nullptr;
    try {
      return allocate(output, {dims, static_cast<size_t>(rank)});
    } catch (...) {
      return nullptr;
    }
  };
}

RunContext& RunContext::of(tessera_run_context* context) {
  return *static_cast<RunContext*>(context->host_state);
}

int32_t RunContext::take_failure(int32_t status, tessera_error* error) noexcept {
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  // A failure that the plug-in reports itself takes precedence.
  if (status != TESSERA_OK) return status;
  return serve_plugin(error, [&] { std::rethrow_exception(failure); });
}

void RunContext::set_workspace(void* memory, int64_t bytes) {
  abi_.workspace = memory;
  abi_.workspace_bytes = bytes;
}

}  // namespace tessera
