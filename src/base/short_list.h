// A list that is short nearly always: the dimensions of a tensor, the inputs of a node.
#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

namespace tessera {

// `count` values, default ones at first: within the object while they are at most kFew, else in
// `memory`.
template <class T, size_t kFew = 8>
class ShortList {
 public:
  explicit ShortList(size_t count,
                     std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : count_(count), many_(count > kFew ? count : 0, memory) {}
  ShortList(const ShortList&) = delete;
  ShortList& operator=(const ShortList&) = delete;

  std::span<T> values() { return {many_.empty() ? few_.data() : many_.data(), count_}; }

 private:
  size_t count_;
  std::array<T, kFew> few_ = {};
  std::pmr::vector<T> many_;
};

}  // namespace tessera
