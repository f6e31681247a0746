// The table of all ops. A plain value, passed to its users.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// The newest ONNX operator set that the schemas cover.
inline constexpr int kNewestOpset = 28;
// The oldest one that models may use.
inline constexpr int kOldestOpset = 1;

class Registry {
 public:
  // nullptr if there is no such op.
  const Op* find(const std::string& domain, const std::string& name) const;
  // The op of a node. Import refuses unknown ops, so a missing one is a bug.
  const Op& of(const Node& node) const;
  // Whether that op has any of these traits.
  bool has_trait(const Node& node, uint32_t traits) const {
    return (of(node).traits & traits) != 0;
  }
  // Names in this domain similar to `name`, for error messages; the likeliest first.
  std::vector<std::string> similar(const std::string& domain, const std::string& name) const;
  std::vector<const Op*> all() const;  // by domain and name

  void add(Op op);

 private:
  std::map<std::pair<std::string, std::string>, Op> ops_;
};

// All ops of op_list.inc.
Registry make_registry();

}  // namespace tessera::ops
