#include "plan/packing/packing_grid.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "plan/packing/mixed_bits.h"

namespace tessera {
namespace {

// The maximum number of buffers with equal lifetime of which all subsets are tried.
constexpr size_t kMaxForAllSubsets = 10;
// The maximum size of the subsets that are tried of larger groups.
constexpr size_t kMaxOfLargeGroup = 2;

// Some of the buffers with equal lifetime, stacked on each other.
struct Stack {
  std::vector<size_t> buffers;
  int64_t units = 0;
};

class Merger {
 public:
  Merger(std::span<const GridBuffer> buffers, const MergeOptions& options)
      : options_(options),
        buffers_(buffers.begin(), buffers.end()),
        is_merged_(buffers.size(), false) {
    for (size_t index = 0; index < buffers.size(); ++index) parts_.push_back({{index, 0}});
  }

  MergedBuffers run() {
    // The fewer buffers there are, the less likely it is that their heights are equal by accident.
    size_t joined = 2;
    while (joined <= options_.max_joined) joined = join_neighbours(joined) ? 2 : joined + 1;
    if (options_.stacks_equal_lifetimes) stack_equal_lifetimes();
    MergedBuffers merged{.stacks_visited = stacks_visited_};
    for (size_t index = 0; index < buffers_.size(); ++index) {
      if (is_merged_[index]) continue;
      merged.buffers.push_back(buffers_[index]);
      merged.parts.push_back(std::move(parts_[index]));
    }
    return merged;
  }

 private:
  using Lifetime = std::pair<int, int>;

  std::map<Lifetime, std::vector<size_t>> by_lifetime() const {
    std::map<Lifetime, std::vector<size_t>> groups;
    for (size_t index = 0; index < buffers_.size(); ++index) {
      if (is_merged_[index]) continue;
      groups[{buffers_[index].first, buffers_[index].end}].push_back(index);
    }
    return groups;
  }

  // Calls `use` with each stack of up to `most` buffers of `group`.
  template <class Use>
  void visit_stacks(const std::vector<size_t>& group, size_t next, size_t most, Stack& stack,
                    const Use& use) {
    ++stacks_visited_;
    if (!stack.buffers.empty()) use(stack);
    if (stack.buffers.size() == most) return;
    for (; next < group.size(); ++next) {
      stack.buffers.push_back(group[next]);
      stack.units += buffers_[group[next]].units;
      visit_stacks(group, next + 1, most, stack, use);
      stack.units -= buffers_[group[next]].units;
      stack.buffers.pop_back();
    }
  }

  template <class Use>
  void visit_stacks(const std::vector<size_t>& group, size_t most, const Use& use) {
    if (group.size() > kMaxForAllSubsets) most = std::min(most, kMaxOfLargeGroup);
    Stack stack;
    visit_stacks(group, 0, most, stack, use);
  }

  // Joins pairs of stacks with up to `joined` buffers in total if they have equal heights and one
  // begins when the other ends. Returns whether it joined any.
  bool join_neighbours(size_t joined) {
    const std::map<Lifetime, std::vector<size_t>> groups = by_lifetime();
    std::map<std::pair<int, int64_t>, Stack>
        beginning;  // by section and height: the fewest buffers
    for (const auto& [lifetime, group] : groups) {
      visit_stacks(group, joined - 1, [&, begin = lifetime.first](const Stack& stack) {
        Stack& known = beginning[{begin, stack.units}];
        const bool is_smaller =
            known.buffers.empty() || stack.buffers.size() < known.buffers.size();
        if (is_smaller) known = stack;
      });
    }
    bool has_joined = false;
    for (const auto& [lifetime, group] : groups) {
      visit_stacks(group, joined - 1, [&, end = lifetime.second](const Stack& earlier) {
        const auto later = beginning.find({end, earlier.units});
        if (later == beginning.end()) return;
        if (earlier.buffers.size() + later->second.buffers.size() > joined) return;
        if (!are_unjoined(earlier) || !are_unjoined(later->second)) return;
        if (!is_selected(earlier, later->second)) return;
        join(earlier, later->second);
        has_joined = true;
      });
    }
    is_changed_.clear();
    return has_joined;
  }

  // Whether options_.share and options_.seed let these stacks be joined. Asked again, the answer is
  // the same, so that later rounds do not join what an earlier one refused.
  bool is_selected(const Stack& earlier, const Stack& later) const {
    if (options_.share >= 1) return true;
    uint64_t bits = mixed_bits(options_.seed);
    for (const Stack* stack : {&earlier, &later}) {
      for (const size_t buffer : stack->buffers) {
        bits = mixed_bits(bits ^ static_cast<uint64_t>(buffers_[buffer].units));
        bits = mixed_bits(bits ^ static_cast<uint64_t>(buffers_[buffer].first));
      }
    }
    constexpr uint64_t kParts = 1024;
    return static_cast<double>(bits % kParts) < options_.share * static_cast<double>(kParts);
  }

  // Whether no buffer of `stack` was joined with others in this round.
  bool are_unjoined(const Stack& stack) const {
    return std::none_of(stack.buffers.begin(), stack.buffers.end(),
                        [&](size_t buffer) { return is_changed_.contains(buffer); });
  }

  void join(const Stack& earlier, const Stack& later) {
    for (const Stack* stack : {&earlier, &later}) {
      for (const size_t buffer : stack->buffers) is_changed_.insert(buffer);
    }
    const size_t whole = stack_on_first(earlier);
    const size_t part = stack_on_first(later);
    buffers_[whole].end = buffers_[part].end;
    absorb(whole, part, 0);
  }

  void stack_equal_lifetimes() {
    for (const auto& [lifetime, group] : by_lifetime()) stack_on_first({.buffers = group});
  }

  // Stacks the buffers on the first one, which represents all of them, and returns it.
  size_t stack_on_first(const Stack& stack) {
    const size_t whole = stack.buffers.front();
    for (size_t position = 1; position < stack.buffers.size(); ++position) {
      const size_t part = stack.buffers[position];
      const int64_t height = buffers_[whole].units;
      buffers_[whole].units += buffers_[part].units;
      absorb(whole, part, height);
    }
    return whole;
  }

  void absorb(size_t whole, size_t part, int64_t offset) {
    for (const MergedPart& moved : parts_[part]) {
      parts_[whole].push_back({moved.buffer, moved.offset + offset});
    }
    parts_[part].clear();
    is_merged_[part] = true;
  }

  MergeOptions options_;
  std::vector<GridBuffer> buffers_;
  std::vector<std::vector<MergedPart>> parts_;
  std::vector<bool> is_merged_;
  int64_t stacks_visited_ = 0;
  std::set<size_t> is_changed_;  // joined in this round
};

}  // namespace

MergedBuffers merge_buffers(std::span<const GridBuffer> buffers, const MergeOptions& options) {
  return Merger(buffers, options).run();
}

std::vector<int64_t> offsets_of_parts(const MergedBuffers& merged, std::span<const int64_t> offsets,
                                      size_t count) {
  std::vector<int64_t> all(count, 0);
  for (size_t index = 0; index < merged.parts.size(); ++index) {
    for (const MergedPart& part : merged.parts[index]) {
      all[part.buffer] = offsets[index] + part.offset;
    }
  }
  return all;
}

}  // namespace tessera
