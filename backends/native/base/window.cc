#include "base/window.h"

#include <algorithm>
#include <span>

namespace tessera::native {

Window window_of(const plugin::Attributes& attributes, const std::vector<int64_t>& kernel,
                 const std::vector<int64_t>& input, const std::vector<int64_t>& output) {
  const size_t rank = kernel.size();
  if (rank == 0 || rank > 3 || input.size() != rank + 2 || output.size() != rank + 2) {
    throw plugin::Failure(TESSERA_UNSUPPORTED, "needs one to three spatial axes");
  }
  Window window;
  std::ranges::copy_backward(plugin::window_axes(attributes, kernel, std::span(input).subspan(2),
                                                 std::span(output).subspan(2)),
                             window.end());
  return window;
}

}  // namespace tessera::native
