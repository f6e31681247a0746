// The table of all ops. A plain value, passed to whoever needs it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// The newest ONNX operator set that the schemas describe.
inline constexpr int kNewestOpset = 28;
// The oldest that models may ask for.
inline constexpr int kOldestOpset = 6;

class Registry {
 public:
  // nullptr when there is no such op.
  const Op* find(const std::string& domain, const std::string& name) const;
  // The op of a node; its absence is a bug, as import has refused unknown ones.
  const Op& of(const Node& node) const;
  // Names in this domain that look like `name`, for error messages; the likeliest first.
  std::vector<std::string> similar(const std::string& domain, const std::string& name) const;
  std::vector<const Op*> all() const;  // by domain and name

  void add(Op op);

 private:
  std::map<std::pair<std::string, std::string>, Op> ops_;
};

// All ops of op_list.inc.
Registry make_registry();

}  // namespace tessera::ops
