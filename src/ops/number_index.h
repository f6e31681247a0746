// Where numbers are in a list: a hash table with open addressing, whose entries are in one array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera::ops {

class NumberIndex {
 public:
  static constexpr int64_t kNone = -1;

  // Adds a number with its position, which is at least 0, unless the number is there already.
  // Returns the position that it has now.
  int64_t add(uint64_t number, int64_t position) {
    if (2 * count_ >= entries_.size()) grow();
    Entry& entry = entries_[place_of(number)];
    if (entry.position == kNone) {
      entry = {number, position};
      ++count_;
    }
    return entry.position;
  }

  int64_t find(uint64_t number) const { return entries_[place_of(number)].position; }

  int64_t count() const { return static_cast<int64_t>(count_); }

 private:
  struct Entry {
    uint64_t number = 0;
    int64_t position = kNone;
  };

  // Where the number is, or would be. At least half of the entries are free.
  size_t place_of(uint64_t number) const {
    // Knuth, The Art of Computer Programming 3, 6.4: multiplicative hashing by the golden ratio.
    size_t place = static_cast<size_t>((number * 0x9E3779B97F4A7C15U) >> shift_);
    while (entries_[place].position != kNone && entries_[place].number != number) {
      place = (place + 1) & (entries_.size() - 1);
    }
    return place;
  }

  void grow() {
    std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(2 * entries_.size()));
    --shift_;
    for (const Entry& entry : old) {
      if (entry.position != kNone) entries_[place_of(entry.number)] = entry;
    }
  }

  size_t count_ = 0;
  int shift_ = 60;  // 64 less the logarithm of the number of entries
  std::vector<Entry> entries_ = std::vector<Entry>(16);
};

}  // namespace tessera::ops
