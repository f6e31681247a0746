#include "plan/packing/pack_part.h"

#include <algorithm>
#include <array>
#include <utility>

#include "plan/packing/first_fit.h"
#include "plan/packing/mixed_bits.h"

namespace tessera {
namespace {

// The effort of the first try of a search, for each member of each section. It suffices to place
// all buffers once and then to try some alternatives. Later tries may take small multiples of it.
constexpr int64_t kTryEffort = 200;
// The search keeps a list of members for each section.
constexpr int64_t kMaxSectionMembers = 1'000'000;
constexpr size_t kMaxToMerge = 4000;
// The searches of merged buffers get one part in kShareOfMerged of the effort.
constexpr int64_t kShareOfMerged = 3;
// The searches of windows get one part in kShareOfWindows of the effort.
constexpr int64_t kShareOfWindows = 8;
// Visiting a stack while merging takes as long as visiting this number of buffers in a search.
constexpr int64_t kEffortOfStack = 30;
// A random merge is given up after this number of tries.
constexpr int64_t kTriesOfMerge = 15;

// The length of try `number`, counted from 1, as a multiple of the first try: 1, 1, 2, 1, 1, 2, 4,
// ..., as in "Optimal Speedup of Las Vegas Algorithms" (Luby, Sinclair, Zuckerman, 1993).
int64_t try_length(int64_t number) {
  int64_t power = 1;
  while (power * 2 - 1 < number) power *= 2;
  return power * 2 - 1 == number ? power : try_length(number - power + 1);
}

int64_t section_members(const std::vector<GridBuffer>& buffers) {
  int64_t members = 0;
  for (const GridBuffer& buffer : buffers) members += buffer.end - buffer.first;
  return members;
}

// The height of a try: mostly the lowest that is not excluded; in turns also the middle between
// that and the best, and just below the best. So the gap is halved if the lower bound is weak, and
// closed step by step if it is strong.
int64_t next_height(int64_t best, int64_t least, int64_t number) {
  switch (number % 8) {
    case 0:
      return best - 1;
    case 4:
      return least + (best - 1 - least) / 2;
    default:
      return least;
  }
}

// Random, because try_length() has a period.
SearchHeuristics next_heuristics(uint64_t seed) {
  const uint64_t bits = mixed_bits(~seed);
  // Both rules together are the best for most problems, but not for all.
  const uint64_t rules = bits / 2 % 8;
  return {.prefers_failed_sections = rules != 1,
          .kept_failures = bits / 16 % 2 == 0 ? 0 : 0.8,
          .prefers_flush_buffers = rules != 2,
          .prefers_area = bits % 2 == 1};
}

// If more buffers are joined at once, wrong merges are more likely, so most merges join few.
MergeOptions random_merge(int64_t number) {
  constexpr std::array<size_t, 8> kMaxJoined = {2, 3, 2, 4, 2, 6, 3, 10};
  const auto seed = static_cast<uint64_t>(number);
  const double luck = static_cast<double>(mixed_bits(seed) % 1024) / 1024;
  return {.max_joined = kMaxJoined[seed % kMaxJoined.size()],
          .share = seed % 3 == 0 ? 1 : 0.3 + 0.7 * luck,
          .seed = seed,
          .stacks_equal_lifetimes = seed % 5 == 0};
}

}  // namespace

PartPacker::PartPacker(const GridPart& part, int64_t enough)
    : part_(part),
      offsets_(pack_first_fit(part.buffers, enough - part.units_below)),
      least_(part.load) {
  height_ = height_of(part.buffers, offsets_);
}

bool PartPacker::can_search() const { return section_members(part_.buffers) <= kMaxSectionMembers; }

int64_t PartPacker::take_turn(int64_t enough, const SearchLimits& limits) {
  const int64_t before = whole_effort_ + merged_effort_ + window_effort_;
  const int64_t enough_here = enough - part_.units_below;
  const bool can_merge = part_.buffers.size() <= kMaxToMerge;
  if (can_merge && merged_effort_ * (kShareOfMerged - 1) <= whole_effort_) {
    take_merged_turn(enough_here, limits);
  } else if (window_effort_ * (kShareOfWindows - 1) <= whole_effort_) {
    take_window_turn(enough_here, limits);
  } else {
    take_whole_turn(enough_here, limits);
  }
  return whole_effort_ + merged_effort_ + window_effort_ - before;
}

PartPacker::Member PartPacker::make_member(std::vector<GridBuffer> buffers) const {
  Member member;
  member.try_effort = kTryEffort * section_members(buffers);
  member.search = std::make_unique<OffsetSearch>(std::move(buffers));
  return member;
}

PartPacker::MergedMember PartPacker::make_merged(const MergeOptions& options) {
  MergedMember member;
  member.buffers = merge_buffers(part_.buffers, options);
  merged_effort_ += kEffortOfStack * member.buffers.stacks_visited;
  // Unmerged buffers are searched anyway.
  if (member.buffers.buffers.size() == part_.buffers.size()) {
    member.is_refuted = true;
  } else {
    static_cast<Member&>(member) = make_member(member.buffers.buffers);
  }
  return member;
}

SearchResult PartPacker::try_once(Member& member, int64_t enough, const SearchLimits& limits) {
  const int64_t number = ++member.tries;
  const int64_t height = next_height(height_, std::max(enough, least_), number);
  SearchLimits limits_of_try = limits;
  limits_of_try.effort = std::min(limits.effort, member.try_effort * try_length(number));
  const auto seed = static_cast<uint64_t>(number);
  return member.search->search(height, limits_of_try, seed, next_heuristics(seed));
}

void PartPacker::take_whole_turn(int64_t enough, const SearchLimits& limits) {
  if (!whole_.search) whole_ = make_member(part_.buffers);
  const SearchResult result = try_once(whole_, enough, limits);
  whole_effort_ += std::max<int64_t>(whole_.search->effort_spent(), 1);
  if (result == SearchResult::Found) adopt(whole_.search->offsets());
  if (result == SearchResult::Impossible) least_ = whole_.search->height() + 1;
}

// If a height is impossible for merged buffers, nothing is proven for the part.
void PartPacker::take_merged_turn(int64_t enough, const SearchLimits& limits) {
  MergedMember& merged = next_merged();
  if (merged.is_refuted) return;
  const SearchResult result = try_once(merged, enough, limits);
  merged_effort_ += merged.search->effort_spent();
  if (result == SearchResult::Found) {
    adopt(offsets_of_parts(merged.buffers, merged.search->offsets(), part_.buffers.size()));
  }
  const int64_t lowest = std::max(enough, least_);
  if (result == SearchResult::Impossible && merged.search->height() <= lowest) {
    merged.is_refuted = true;
  }
}

void PartPacker::take_window_turn(int64_t enough, const SearchLimits& limits) {
  if (!windows_) windows_ = std::make_unique<WindowRefuter>(part_.buffers);
  const int64_t lowest = std::max(enough, least_);
  if (windows_->take_turn(lowest, limits)) least_ = lowest + 1;
  window_effort_ += windows_->effort_spent();
}

// The two members that are always the same suffice for most problems. If one is refuted, its turns
// go to random merges.
PartPacker::MergedMember& PartPacker::next_merged() {
  if (merged_turns_ == 0) all_merged_ = make_merged({});
  if (merged_turns_ == 1) {
    pairs_merged_ = make_merged({.max_joined = 2, .stacks_equal_lifetimes = false});
  }
  const int64_t turn = merged_turns_++;
  if (turn % 2 == 0 && !all_merged_.is_refuted) return all_merged_;
  if (turn % 4 == 1 && !pairs_merged_.is_refuted) return pairs_merged_;
  return next_random_merge();
}

PartPacker::MergedMember& PartPacker::next_random_merge() {
  const bool is_used_up = some_merged_.is_refuted || some_merged_.tries >= kTriesOfMerge;
  if (!some_merged_.search || is_used_up) {
    some_merged_ = make_merged(random_merge(++some_merged_count_));
  }
  return some_merged_;
}

void PartPacker::adopt(std::vector<int64_t> offsets) {
  const int64_t height = height_of(part_.buffers, offsets);
  if (height >= height_) return;
  height_ = height;
  offsets_ = std::move(offsets);
}

}  // namespace tessera
