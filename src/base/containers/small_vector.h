// A small vector: for lists that are nearly always short, such as dimensions of a tensor or inputs
// of a node.
#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

namespace tessera {

// `count` value-initialised elements, stored inside the object if there are at most kFew, else in
// `memory`.
template <class T, size_t kFew = 8>
class SmallVector {
 public:
  explicit SmallVector(size_t count,
                       std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : count_(count), many_(count > kFew ? count : 0, memory) {}
  SmallVector(const SmallVector&) = delete;
  SmallVector& operator=(const SmallVector&) = delete;

  std::span<T> values() { return {many_.empty() ? few_.data() : many_.data(), count_}; }

 private:
  size_t count_;
  std::array<T, kFew> few_ = {};
  std::pmr::vector<T> many_;
};

}  // namespace tessera
