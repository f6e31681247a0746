#include "axes.h"

namespace tessera::native {

using plugin::Failure;
using plugin::Node;
using plugin::Value;

std::vector<bool> reduced_axes(const Node& node, size_t rank) {
  std::vector<int64_t> axes = node.attributes().get_ints("axes");
  const Value given = node.input(1);
  if (given.is_present() && !(given.type().is_known() && given.type().elements() == 0)) {
    if (!given.is_constant() || given.constant() == nullptr) {
      throw Failure(TESSERA_UNSUPPORTED, "reduces constant axes only");
    }
    const std::span<const int64_t> numbers = given.constant_as<int64_t>();
    axes.assign(numbers.begin(), numbers.end());
  }
  const bool is_all = axes.empty() && node.attributes().get_int("noop_with_empty_axes") == 0;
  std::vector<bool> is_reduced(rank, is_all);
  for (const int64_t axis : axes) {
    is_reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)] = true;
  }
  return is_reduced;
}

}  // namespace tessera::native
