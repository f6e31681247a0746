#include "ops/registry.h"

#include <algorithm>

#include "base/check.h"

namespace tessera::ops {

#define OP_FILE(file) std::vector<Op> file##_ops();
#include "ops/op_list.inc"
#undef OP_FILE

namespace {

// Levenshtein distance, letters compared without case.
size_t edit_distance(const std::string& left, const std::string& right) {
  std::vector<size_t> row(right.size() + 1);
  for (size_t column = 0; column <= right.size(); ++column) row[column] = column;
  for (size_t line = 1; line <= left.size(); ++line) {
    size_t diagonal = row[0];
    row[0] = line;
    for (size_t column = 1; column <= right.size(); ++column) {
      const bool is_same = std::tolower(static_cast<unsigned char>(left[line - 1])) ==
                           std::tolower(static_cast<unsigned char>(right[column - 1]));
      const size_t replaced = diagonal + (is_same ? 0 : 1);
      diagonal = row[column];
      row[column] = std::min({replaced, row[column] + 1, row[column - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

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
#define OP_FILE(file) \
  for (Op & op : file##_ops()) registry.add(std::move(op));
#include "ops/op_list.inc"
#undef OP_FILE
  return registry;
}

}  // namespace tessera::ops
