#include "graph/same_operation.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "graph/attribute.h"

namespace tessera {
namespace {

bool is_same(const Attribute& left, const Attribute& right) {
  if (left.index() != right.index()) return false;
  return std::visit(
      [&](const auto& one) {
        using Kind = std::decay_t<decltype(one)>;
        const auto& other = std::get<Kind>(right);
        if constexpr (std::is_same_v<Kind, Tensor>) {
          return have_same_elements(one, other);
        } else if constexpr (std::is_same_v<Kind, std::vector<Tensor>>) {
          return std::equal(one.begin(), one.end(), other.begin(), other.end(), have_same_elements);
        } else {
          return one == other;
        }
      },
      left);
}

}  // namespace

bool have_same_elements(const Tensor& left, const Tensor& right) {
  if (left.type() != right.type() || left.dims() != right.dims()) return false;
  if (left.data() == right.data()) return true;
  if (left.is_strings()) {
    return std::ranges::equal(left.as<std::string>(), right.as<std::string>());
  }
  return left.has_elements() && right.has_elements() &&
         std::memcmp(left.data(), right.data(), static_cast<size_t>(left.bytes())) == 0;
}

bool do_same_operation(const Node& left, const Node& right) {
  return left.op == right.op && left.domain == right.domain && left.version == right.version &&
         left.bodies.empty() && right.bodies.empty() &&
         std::ranges::equal(left.attributes.all(), right.attributes.all(),
                            [](const auto& one, const auto& other) {
                              return one.first == other.first && is_same(one.second, other.second);
                            });
}

}  // namespace tessera
