#include "base/window.h"

#include <algorithm>
#include <span>
#include <string>

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

PaddingRule padding_rule_of(const plugin::Attributes& attributes) {
  if (plugin::has_explicit_pads(attributes)) return PaddingRule::Fixed;
  const std::string auto_pad = attributes.get_string("auto_pad", "NOTSET");
  if (auto_pad == "VALID") return PaddingRule::Fixed;
  return auto_pad == "SAME_UPPER" ? PaddingRule::SameUpper : PaddingRule::SameLower;
}

bool has_sizes(const Window& window, std::span<const int64_t> input,
               std::span<const int64_t> output) {
  const size_t first = window.size() - (input.size() - 2);
  for (size_t index = first; index < window.size(); ++index) {
    const size_t axis = index - first + 2;
    if (window[index].input != input[axis] || window[index].output != output[axis]) return false;
  }
  return true;
}

Window resized(const Window& window, PaddingRule rule, std::span<const int64_t> input,
               std::span<const int64_t> output) {
  Window made = window;
  const size_t first = window.size() - (input.size() - 2);
  for (size_t index = first; index < window.size(); ++index) {
    const size_t axis = index - first + 2;
    set_sizes(made[index], rule, input[axis], output[axis]);
  }
  return made;
}

}  // namespace tessera::native
