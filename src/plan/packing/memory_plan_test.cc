#include "plan/packing/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include "base/random_below_test.h"
#include "plan/packing/knot_test.h"
#include "tessera/error.h"

namespace tessera {
namespace {

std::vector<BufferRequest> random_requests(std::mt19937& random, int count, int steps, int bytes) {
  std::vector<BufferRequest> requests;
  for (int index = 0; index < count; ++index) {
    const int lower = random_below(random, steps);
    requests.push_back(
        {lower, lower + 1 + random_below(random, steps - lower), 1 + random_below(random, bytes)});
  }
  return requests;
}

// Finds the smallest height of a few small buffers by exhaustive search: tries each buffer at every
// offset, on a board with one bit for each step and byte.
class BruteForce {
 public:
  explicit BruteForce(std::vector<BufferRequest> requests) : requests_(std::move(requests)) {
    std::sort(requests_.begin(), requests_.end(),
              [](const auto& left, const auto& right) { return left.lower < right.lower; });
    for (size_t step = 0; step < board_.size(); ++step) {
      int64_t live = 0;
      for (const BufferRequest& request : requests_) {
        const auto now = static_cast<int64_t>(step);
        if (request.lower <= now && now < request.upper) live += request.bytes;
      }
      height_ = std::max(height_, live);
    }
    while (!fits(0)) ++height_;
  }
  int64_t height() const { return height_; }

 private:
  bool fits(size_t next) {
    if (next == requests_.size()) return true;
    const BufferRequest& request = requests_[next];
    for (int64_t offset = 0; offset + request.bytes <= height_; ++offset) {
      const uint64_t bits = ((uint64_t{1} << request.bytes) - 1) << offset;
      bool is_free = true;
      for (int64_t step = request.lower; step < request.upper; ++step) {
        is_free = is_free && (board_[static_cast<size_t>(step)] & bits) == 0;
      }
      if (!is_free) continue;
      flip(request, bits);
      const bool is_solved = fits(next + 1);
      flip(request, bits);
      if (is_solved) return true;
    }
    return false;
  }

  void flip(const BufferRequest& request, uint64_t bits) {
    for (int64_t step = request.lower; step < request.upper; ++step) {
      board_[static_cast<size_t>(step)] ^= bits;
    }
  }

  std::vector<BufferRequest> requests_;
  std::array<uint64_t, 32> board_{};
  int64_t height_ = 0;
};

// Buffers that take `bytes` in total in every step: if some end, others of the same total size
// begin.
std::vector<BufferRequest> full_steps(std::mt19937& random, int bytes, int steps) {
  std::vector<BufferRequest> requests;
  std::vector<size_t> live;
  for (int step = 0; step < steps; ++step) {
    int64_t free_bytes = step == 0 ? bytes : 0;
    std::erase_if(live, [&](size_t index) {
      const bool ends = random_below(random, 2) == 0;
      free_bytes += ends ? requests[index].bytes : 0;
      requests[index].upper += ends ? 0 : 1;
      return ends;
    });
    while (free_bytes > 0) {
      const int64_t size =
          1 + random_below(random, static_cast<int>(std::min<int64_t>(free_bytes, 3)));
      live.push_back(requests.size());
      requests.push_back({step, step + 1, size});
      free_bytes -= size;
    }
  }
  return requests;
}

// `count` buffers that fill an area of `steps` times `bytes` completely: a rectangle that is cut
// again and again.
std::vector<BufferRequest> cut_rectangle(std::mt19937& random, int count, int steps, int bytes) {
  struct Piece {
    int left, right, bottom, top;
  };
  std::vector<Piece> pieces = {{0, steps, 0, bytes}};
  while (static_cast<int>(pieces.size()) < count) {
    const auto found = pieces.begin() + random_below(random, static_cast<int>(pieces.size()));
    Piece whole = *found;
    Piece rest = whole;
    const bool cuts_time = random_below(random, 2) == 0;
    const int length = cuts_time ? whole.right - whole.left : whole.top - whole.bottom;
    if (length < 2) continue;
    const int cut = 1 + random_below(random, length - 1);
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
        random_requests(random, random_below(random, 40), 30, 5000);
    const int64_t alignment = int64_t{1} << random_below(random, 8);
    const MemoryPlan plan =
        plan_memory(requests, {.alignment = alignment, .search_effort = 50'000});
    EXPECT_EQ(explain_violation(requests, plan, alignment), "");
    EXPECT_LE(plan.lower_bound_bytes, plan.arena_bytes);
    EXPECT_EQ(plan.arena_bytes % alignment, 0);
  }
}

TEST(PlanMemory, FindsWhatBruteForceFindsForAFewBuffers) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    const int count = 1 + random_below(random, 9);
    const int bytes = round % 2 == 0 ? 2 : 5;
    const std::vector<BufferRequest> requests =
        random_requests(random, count, 2 + random_below(random, 7), bytes);
    const MemoryPlan plan = plan_memory(requests);
    ASSERT_EQ(plan.arena_bytes, BruteForce(requests).height()) << "round " << round;
    EXPECT_TRUE(plan.is_smallest);
    EXPECT_EQ(explain_violation(requests, plan), "");
  }
}

TEST(PlanMemory, FindsWhatBruteForceFindsWhereNothingMayBeWasted) {
  std::mt19937 random(12);
  int above_the_bound = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::vector<BufferRequest> requests = full_steps(random, 4 + round % 2, 16);
    const MemoryPlan plan = plan_memory(requests);
    ASSERT_EQ(plan.arena_bytes, BruteForce(requests).height()) << "round " << round;
    EXPECT_TRUE(plan.is_smallest);
    EXPECT_EQ(explain_violation(requests, plan), "");
    if (plan.arena_bytes > plan.lower_bound_bytes) ++above_the_bound;
  }
  EXPECT_GT(above_the_bound, 2) << "too few cases in which the bound is not the answer";
}

TEST(PlanMemory, PutsARectangleTogetherAgain) {
  std::mt19937 random(3);
  for (const int count : {10, 30, 100, 250}) {
    for (int round = 0; round < 3; ++round) {
      const std::vector<BufferRequest> requests = cut_rectangle(random, count, 1000, 1 << 20);
      const MemoryPlan plan = plan_memory(requests, {.search_effort = 400'000'000});
      EXPECT_EQ(plan.arena_bytes, 1 << 20) << count << " pieces, round " << round;
      EXPECT_EQ(explain_violation(requests, plan), "");
    }
  }
}

TEST(PlanMemory, EqualRequestsGetEqualPlans) {
  std::mt19937 random(5);
  const std::vector<BufferRequest> requests = cut_rectangle(random, 80, 100, 1000);
  EXPECT_EQ(plan_memory(requests).offsets, plan_memory(requests).offsets);
}

TEST(PlanMemory, DoesNotCallSmallestWhatItDidNotProve) {
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

TEST(PlanMemory, EndsWhenItIsOver) {
  std::mt19937 random(4);
  const std::vector<BufferRequest> requests = cut_rectangle(random, 900, 100, 100'000);
  int questions = 0;
  const MemoryPlan plan =
      plan_memory(requests, {.search_effort = std::numeric_limits<int64_t>::max(),
                             .is_over = [&] { return ++questions > 20; }});
  EXPECT_EQ(explain_violation(requests, plan), "");
  EXPECT_FALSE(plan.is_smallest);
  EXPECT_LE(questions, 23) << "it went on";
  const MemoryPlan quick = plan_memory(requests, {.is_over = [] { return true; }});
  EXPECT_EQ(quick.offsets, plan_memory(requests, {.search_effort = 0}).offsets);
}

TEST(PlanMemory, ProvesThatAKnotAmongOtherBuffersNeedsMore) {
  // The buffers of the knot have at most 500 bytes at any step, but no placement of them takes less
  // than 600.
  std::vector<BufferRequest> tied;
  for (const GridBuffer& buffer : knot()) {
    tied.push_back({buffer.first, buffer.end, 100 * buffer.units});
  }
  std::mt19937 random(9);
  for (int round = 0; round < 20; ++round) {
    // Rectangles of 500 bytes before and after it, and buffers that are live all the time.
    std::vector<BufferRequest> requests;
    for (int64_t place = 0; place < 6; ++place) {
      const std::vector<BufferRequest> some =
          place == round % 6 ? tied : cut_rectangle(random, 12, 6, 500);
      for (const BufferRequest& one : some) {
        requests.push_back({one.lower + 6 * place, one.upper + 6 * place, one.bytes});
      }
    }
    for (int index = 0; index < 5; ++index) {
      requests.push_back({0, 36, 1 + random_below(random, 500)});
    }
    std::shuffle(requests.begin(), requests.end(), random);
    const MemoryPlan plan = plan_memory(requests);
    EXPECT_GT(plan.arena_bytes, plan.lower_bound_bytes);
    EXPECT_TRUE(plan.is_smallest);
    EXPECT_EQ(explain_violation(requests, plan), "");
  }
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
