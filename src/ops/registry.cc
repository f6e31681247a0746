#include "ops/registry.h"

#include <algorithm>

#include "base/errors/check.h"
#include "base/errors/likely_name.h"
#include "ops/op.h"

namespace tessera::ops {

#define OP_FILE(folder, file) std::vector<Op> file##_ops();
#include "ops/op_list.inc"
#undef OP_FILE

const Op* Registry::find(const std::string& domain, const std::string& name) const {
  const auto found = ops_.find({domain, name});
  return found == ops_.end() ? nullptr : &found->second;
}

const Op& Registry::of(const Node& node) const {
  const Op* op = find(node.domain, node.op);
  TESSERA_CHECK(op != nullptr, "import accepts only nodes whose op is known");
  return *op;
}

std::vector<std::string> Registry::similar(const std::string& domain,
                                           const std::string& name) const {
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const auto& [key, op] : ops_) {
    if (key.first != domain) continue;
    const size_t distance = edit_distance(name.substr(0, 64), key.second);
    if (distance <= 2) ranked.emplace_back(distance, key.second);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (auto& [distance, similar_name] : ranked) names.push_back(std::move(similar_name));
  return names;
}

std::vector<const Op*> Registry::all() const {
  std::vector<const Op*> result;
  for (const auto& [key, op] : ops_) result.push_back(&op);
  return result;
}

void Registry::add(Op op) {
  auto key = std::pair(op.domain, op.name);
  const bool is_new = ops_.emplace(std::move(key), std::move(op)).second;
  TESSERA_CHECK(is_new, "an op is listed once");
}

Registry make_registry() {
  Registry registry;
#define OP_FILE(folder, file) \
  for (Op & op : file##_ops()) registry.add(with_error_bound(std::move(op)));
#include "ops/op_list.inc"
#undef OP_FILE
  return registry;
}

}  // namespace tessera::ops
