// How a candidate's kernel comes to be: the host's side of tessera_candidate::build.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/kernel.h"
#include "graph/graph.h"
#include "tessera/backend_abi.h"

namespace tessera {

// Calls `face->build` with the threads it is given. `dense_layout` is what any dense layout became,
// or "". The kernel keeps the elements of `absorbed`. It throws Error with the backend's reason,
// and LetGo where one of `absorbed` has no elements any more.
std::function<Kernel(int threads)> kernel_builder(std::shared_ptr<const tessera_candidate> face,
                                                  std::string backend, std::string dense_layout,
                                                  std::vector<Value> absorbed);

// Calls `face->load` with bytes that a kernel of such a candidate was saved as; null where it has
// none. The kernel keeps the bytes. It throws Error with the backend's reason.
std::function<Kernel(std::shared_ptr<const void> bytes, int64_t size)> kernel_loader(
    std::shared_ptr<const tessera_candidate> face, std::string backend);

}  // namespace tessera
