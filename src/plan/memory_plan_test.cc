#include "plan/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace tessera {
namespace {

TEST(PlanMemory, PlacesRequests) {
  const struct {
    const char* name;
    std::vector<BufferRequest> requests;
    int64_t arena_bytes;
  } cases[] = {
      {"nothing to place", {}, 0},
      {"disjoint in time share bytes", {{0, 1, 64}, {2, 3, 64}}, 64},
      {"touching steps do not share", {{0, 1, 64}, {1, 2, 64}}, 128},
      {"no bytes, no place", {{0, 1, 0}, {0, 1, 64}}, 64},
      {"ends are rounded up to the alignment", {{0, 0, 65}, {0, 0, 1}}, 129},
      {"a gap is filled", {{0, 0, 64}, {0, 2, 128}, {2, 2, 64}}, 192},
  };
  for (const auto& [name, requests, arena_bytes] : cases) {
    const MemoryPlan plan = plan_memory(requests);
    EXPECT_EQ(plan.arena_bytes, arena_bytes) << name;
    EXPECT_EQ(explain_violation(requests, plan), "") << name;
  }
}

TEST(PlanMemory, IsSoundOnRandomRequests) {
  std::mt19937 random(7);
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<BufferRequest> requests;
    for (int index = below(40); index > 0; --index) {
      const int first = below(30);
      requests.push_back({first, first + below(8), below(5000), int64_t{1} << below(8)});
    }
    EXPECT_EQ(explain_violation(requests, plan_memory(requests)), "");
  }
}

TEST(PlanMemory, SaysWhatIsWrongWithAPlan) {
  const std::vector<BufferRequest> requests = {{0, 1, 64}, {1, 2, 64}};
  EXPECT_EQ(explain_violation(requests, {{0, 64}, 128}), "");
  EXPECT_EQ(explain_violation(requests, {{0, 32}, 128}), "buffer 1 is not aligned");
  EXPECT_EQ(explain_violation(requests, {{0, 0}, 128}), "buffer 1 overlaps buffer 0");
  EXPECT_EQ(explain_violation(requests, {{0, 64}, 64}), "buffer 1 is not inside the arena");
  EXPECT_EQ(explain_violation(requests, {{0}, 64}), "a request has no offset");
}

}  // namespace
}  // namespace tessera
