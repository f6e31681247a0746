#include "plan/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tessera/error.h"

namespace tessera {
namespace {

int below(std::mt19937& random, int limit) {
  return static_cast<int>(random() % static_cast<unsigned>(limit));
}

std::vector<BufferRequest> random_requests(std::mt19937& random, int count, int steps, int bytes) {
  std::vector<BufferRequest> requests;
  for (int index = 0; index < count; ++index) {
    const int lower = below(random, steps);
    requests.push_back({lower, lower + 1 + below(random, steps - lower), 1 + below(random, bytes)});
  }
  return requests;
}

// The smallest height, found without a thought: some order of placing each buffer on those that
// were placed before and live at the same time gives it, so all orders are tried.
class BruteForce {
 public:
  explicit BruteForce(const std::vector<BufferRequest>& requests)
      : requests_(requests), tops_(requests.size(), -1) {
    for (const BufferRequest& request : requests) best_ += request.bytes;
    place_next(0);
  }
  int64_t height() const { return best_; }

 private:
  void place_next(int64_t height) {
    if (height >= best_) return;
    bool is_complete = true;
    for (size_t next = 0; next < requests_.size(); ++next) {
      if (tops_[next] >= 0) continue;
      is_complete = false;
      int64_t offset = 0;
      for (size_t other = 0; other < requests_.size(); ++other) {
        const bool is_beside = requests_[other].upper <= requests_[next].lower ||
                               requests_[next].upper <= requests_[other].lower;
        if (!is_beside) offset = std::max(offset, tops_[other]);
      }
      tops_[next] = offset + requests_[next].bytes;
      place_next(std::max(height, tops_[next]));
      tops_[next] = -1;
    }
    if (is_complete) best_ = height;
  }

  const std::vector<BufferRequest>& requests_;
  std::vector<int64_t> tops_;  // -1: not placed
  int64_t best_ = 0;
};

// `count` buffers that fill all of `steps` times `bytes`: a rectangle, cut again and again.
std::vector<BufferRequest> cut_rectangle(std::mt19937& random, int count, int steps, int bytes) {
  struct Piece {
    int left, right, bottom, top;
  };
  std::vector<Piece> pieces = {{0, steps, 0, bytes}};
  while (static_cast<int>(pieces.size()) < count) {
    const auto found = pieces.begin() + below(random, static_cast<int>(pieces.size()));
    Piece whole = *found;
    Piece rest = whole;
    const bool cuts_time = below(random, 2) == 0;
    const int length = cuts_time ? whole.right - whole.left : whole.top - whole.bottom;
    if (length < 2) continue;
    const int cut = 1 + below(random, length - 1);
    if (cuts_time) {
      whole.right = rest.left = whole.left + cut;
    } else {
      whole.top = rest.bottom = whole.bottom + cut;
    }
    *found = whole;
    pieces.push_back(rest);
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  std::vector<BufferRequest> requests;
  for (const Piece& piece : pieces) {
    requests.push_back({piece.left, piece.right, piece.top - piece.bottom});
  }
  return requests;
}

TEST(PlanMemory, PlacesRequests) {
  const struct {
    const char* name;
    std::vector<BufferRequest> requests;
    int64_t arena_bytes;
  } cases[] = {
      {"nothing to place", {}, 0},
      {"nothing that has bytes", {{0, 2, 0}}, 0},
      {"disjoint in time share bytes", {{0, 2, 64}, {2, 4, 64}}, 64},
      {"touching steps do not share", {{0, 2, 64}, {1, 3, 64}}, 128},
      {"no bytes, no place", {{0, 2, 0}, {0, 2, 64}}, 64},
      {"sizes are rounded up to the alignment", {{0, 1, 65}, {0, 1, 1}}, 192},
      {"a gap is filled", {{0, 1, 64}, {0, 3, 128}, {2, 3, 64}}, 192},
      {"times between steps need not be close",
       {{0, 1LL << 60, 64}, {1LL << 59, 1LL << 62, 1}},
       128},
  };
  for (const auto& [name, requests, arena_bytes] : cases) {
    const MemoryPlan plan = plan_memory(requests, {.alignment = 64});
    EXPECT_EQ(plan.arena_bytes, arena_bytes) << name;
    EXPECT_EQ(plan.lower_bound_bytes, arena_bytes) << name;
    EXPECT_TRUE(plan.is_smallest) << name;
    EXPECT_EQ(explain_violation(requests, plan, 64), "") << name;
  }
}

TEST(PlanMemory, IsSoundOnRandomRequests) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::vector<BufferRequest> requests =
        random_requests(random, below(random, 40), 30, 5000);
    const int64_t alignment = int64_t{1} << below(random, 8);
    const MemoryPlan plan =
        plan_memory(requests, {.alignment = alignment, .search_effort = 50'000});
    EXPECT_EQ(explain_violation(requests, plan, alignment), "");
    EXPECT_LE(plan.lower_bound_bytes, plan.arena_bytes);
    EXPECT_EQ(plan.arena_bytes % alignment, 0);
  }
}

TEST(PlanMemory, FindsWhatBruteForceFinds) {
  std::mt19937 random(11);
  int above_the_bound = 0;
  for (int round = 0; round < 6000; ++round) {
    const int count = 1 + below(random, 8);
    // Coarse and fine sizes: many equal buffers, and many heights to tell apart.
    const int bytes = round % 2 == 0 ? 4 : 1000;
    const std::vector<BufferRequest> requests =
        random_requests(random, count, 2 + below(random, 7), bytes);
    const MemoryPlan plan = plan_memory(requests);
    ASSERT_EQ(plan.arena_bytes, BruteForce(requests).height()) << "round " << round;
    EXPECT_TRUE(plan.is_smallest);
    EXPECT_EQ(explain_violation(requests, plan), "");
    if (plan.arena_bytes > plan.lower_bound_bytes) ++above_the_bound;
  }
  EXPECT_GT(above_the_bound, 100) << "too few cases in which the bound is not the answer";
}

TEST(PlanMemory, PutsARectangleTogetherAgain) {
  std::mt19937 random(3);
  for (const int count : {10, 30, 100, 300}) {
    for (int round = 0; round < 5; ++round) {
      const std::vector<BufferRequest> requests = cut_rectangle(random, count, 400, 100'000);
      const MemoryPlan plan = plan_memory(requests, {.search_effort = 400'000'000});
      EXPECT_EQ(plan.arena_bytes, 100'000) << count << " pieces, round " << round;
      EXPECT_EQ(explain_violation(requests, plan), "");
    }
  }
}

TEST(PlanMemory, EqualRequestsGetEqualPlans) {
  std::mt19937 random(5);
  const std::vector<BufferRequest> requests = cut_rectangle(random, 80, 100, 1000);
  EXPECT_EQ(plan_memory(requests).offsets, plan_memory(requests).offsets);
}

// Two pairs of buffers that each other's ends overlap: with 3 units live at once, 4 are needed.
const std::vector<BufferRequest> kAboveTheBound = {{0, 3, 1}, {2, 5, 2}, {4, 7, 1}, {6, 8, 2},
                                                   {0, 2, 2}, {3, 4, 2}, {5, 6, 2}, {7, 8, 1}};

TEST(PlanMemory, SaysWhetherThereIsASmallerArena) {
  const MemoryPlan found = plan_memory(kAboveTheBound);
  EXPECT_EQ(found.arena_bytes, BruteForce(kAboveTheBound).height());
  EXPECT_TRUE(found.is_smallest);

  std::mt19937 random(4);
  const std::vector<BufferRequest> requests = cut_rectangle(random, 60, 100, 100'000);
  const MemoryPlan quick = plan_memory(requests, {.search_effort = 0});
  EXPECT_GT(quick.arena_bytes, 100'000);
  EXPECT_EQ(quick.lower_bound_bytes, 100'000);
  EXPECT_FALSE(quick.is_smallest);
}

TEST(PlanMemory, StopsWhereItIsEnough) {
  std::mt19937 random(4);
  const std::vector<BufferRequest> requests = cut_rectangle(random, 60, 100, 100'000);
  const int64_t quick_bytes = plan_memory(requests, {.search_effort = 0}).arena_bytes;
  const MemoryPlan plan = plan_memory(requests, {.enough_bytes = quick_bytes});
  EXPECT_EQ(plan.arena_bytes, quick_bytes);
  EXPECT_LE(plan_memory(requests, {.enough_bytes = quick_bytes - 1}).arena_bytes, quick_bytes - 1);
}

TEST(PlanMemory, RefusesSizesThatExceed64Bits) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const std::vector<BufferRequest>& requests :
       {std::vector<BufferRequest>{{0, 1, most}},
        std::vector<BufferRequest>{{0, 1, most / 2}, {0, 1, most / 2}, {0, 1, 64}}}) {
    EXPECT_THROW(plan_memory(requests, {.alignment = 64}), Error);
  }
}

TEST(PlanMemory, SaysWhatIsWrongWithAPlan) {
  const std::vector<BufferRequest> requests = {{0, 2, 64}, {1, 3, 64}};
  const auto explain = [&](std::vector<int64_t> offsets, int64_t arena_bytes) {
    return explain_violation(requests, {.offsets = std::move(offsets), .arena_bytes = arena_bytes},
                             64);
  };
  EXPECT_EQ(explain({0, 64}, 128), "");
  EXPECT_EQ(explain({0, 32}, 128), "buffer 1 is not aligned");
  EXPECT_EQ(explain({0, 0}, 128), "buffer 1 overlaps buffer 0");
  EXPECT_EQ(explain({0, 64}, 64), "buffer 1 is not inside the arena");
  EXPECT_EQ(explain({0}, 64), "a request has no offset");
}

}  // namespace
}  // namespace tessera
