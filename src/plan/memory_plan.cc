#include "plan/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "tessera/error.h"

namespace tessera {
namespace {

int64_t checked_add(int64_t left, int64_t right) {
  int64_t sum = 0;
  if (__builtin_add_overflow(left, right, &sum)) {
    throw Error(ErrorKind::InvalidModel, "inner values",
                "the sizes of its values together exceed 64 bits");
  }
  return sum;
}

int64_t aligned(int64_t offset, int64_t align) {
  return checked_add(offset, align - 1) / align * align;
}

bool lives_with(const BufferRequest& left, const BufferRequest& right) {
  return left.first_step <= right.last_step && right.first_step <= left.last_step;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<BufferRequest>& requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    return requests[left].bytes > requests[right].bytes;
  });
  MemoryPlan plan;
  plan.offsets.assign(requests.size(), 0);
  std::vector<size_t> placed;  // by offset
  for (const size_t index : order) {
    const BufferRequest& request = requests[index];
    int64_t offset = 0;
    for (const size_t other : placed) {
      if (!lives_with(request, requests[other])) continue;
      if (checked_add(offset, request.bytes) <= plan.offsets[other]) break;
      const int64_t end = checked_add(plan.offsets[other], requests[other].bytes);
      offset = std::max(offset, aligned(end, request.align));
    }
    plan.offsets[index] = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, checked_add(offset, request.bytes));
    const auto place =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](int64_t value, size_t other) { return value < plan.offsets[other]; });
    placed.insert(place, index);
  }
  return plan;
}

std::string explain_violation(const std::vector<BufferRequest>& requests, const MemoryPlan& plan) {
  if (plan.offsets.size() != requests.size()) return "a request has no offset";
  for (size_t one = 0; one < requests.size(); ++one) {
    const std::string name = "buffer " + std::to_string(one);
    const int64_t begin = plan.offsets[one];
    const int64_t end = begin + requests[one].bytes;
    if (begin < 0 || end > plan.arena_bytes) return name + " is not inside the arena";
    if (begin % requests[one].align != 0) return name + " is not aligned";
    for (size_t other = 0; other < one; ++other) {
      const bool is_apart_in_time = requests[one].last_step < requests[other].first_step ||
                                    requests[other].last_step < requests[one].first_step;
      const bool is_apart_in_space =
          end <= plan.offsets[other] || plan.offsets[other] + requests[other].bytes <= begin;
      if (!is_apart_in_time && !is_apart_in_space) {
        return name + " overlaps buffer " + std::to_string(other);
      }
    }
  }
  return "";
}

}  // namespace tessera
