// Names for what a pass moves from one graph into another.
#pragma once

#include <set>
#include <string>

namespace tessera {

// The names of a graph's values, or of its nodes.
class UniqueNames {
 public:
  void take(const std::string& name) { taken_.insert(name); }

  // `name` if it is free, else one that contains it and `outer`.
  std::string make(const std::string& name, const std::string& outer) {
    if (taken_.insert(name).second) return name;
    std::string longer = outer + "." + name;
    for (int count = 2; !taken_.insert(longer).second; ++count) {
      longer = outer + "." + name + "#" + std::to_string(count);
    }
    return longer;
  }

 private:
  std::set<std::string> taken_;
};

}  // namespace tessera
