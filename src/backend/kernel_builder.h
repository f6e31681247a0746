// Builds and restores kernels of candidates: the host's side of tessera_candidate::build.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/kernel.h"
#include "backend/plugin.h"
#include "graph/graph.h"
#include "tessera/backend_abi.h"

namespace tessera {

// Returns a function that calls `abi->build` of `plugin` with a number of threads. `dense_layout`
// is the layout chosen for "any dense layout", or "". The kernel keeps the elements of `absorbed`
// alive, none of which may have been released. The function throws Error with the backend's reason.
std::function<Kernel(int threads)> kernel_builder(std::shared_ptr<const tessera_candidate> abi,
                                                  std::shared_ptr<const Plugin> plugin,
                                                  std::string dense_layout,
                                                  std::vector<Value> absorbed);

// Returns a function that calls `abi->load` with the saved bytes of such a candidate's kernel;
// null if there is no load. The kernel keeps the bytes. The function throws Error with the
// backend's reason.
std::function<Kernel(std::shared_ptr<const void> bytes, int64_t size)> kernel_loader(
    std::shared_ptr<const tessera_candidate> abi, std::shared_ptr<const Plugin> plugin);

}  // namespace tessera
