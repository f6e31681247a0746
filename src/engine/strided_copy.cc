#include "engine/strided_copy.h"

#include <algorithm>
#include <cstring>

namespace tessera {
namespace {

// The minimum number of bytes that one thread copies.
constexpr int64_t kGrainBytes = 64 * 1024;
constexpr int64_t kMaxCuts = 64;

// With a constant size, the copy compiles to one instruction.
template <int64_t kBytes>
void copy_pieces(const char* from, char* to, const StridedCopy::Loop& loop, int64_t count,
                 int64_t bytes) {
  for (int64_t index = 0; index < count; ++index) {
    std::memcpy(to, from, static_cast<size_t>(kBytes > 0 ? kBytes : bytes));
    from += loop.from_step;
    to += loop.to_step;
  }
}

void copy_row(const char* from, char* to, const StridedCopy::Loop& loop, int64_t count,
              int64_t bytes) {
  switch (bytes) {
    case 1:
      return copy_pieces<1>(from, to, loop, count, bytes);
    case 2:
      return copy_pieces<2>(from, to, loop, count, bytes);
    case 4:
      return copy_pieces<4>(from, to, loop, count, bytes);
    case 8:
      return copy_pieces<8>(from, to, loop, count, bytes);
    default:
      return copy_pieces<0>(from, to, loop, count, bytes);
  }
}

// Cuts a large contiguous copy, so that several threads can share it.
void cut_long_piece(StridedCopy& copy) {
  if (!copy.loops.empty() || copy.piece_bytes < 2 * kGrainBytes) return;
  int64_t cuts = std::min(copy.piece_bytes / kGrainBytes, kMaxCuts);
  while (copy.piece_bytes % cuts != 0) --cuts;
  copy.piece_bytes /= cuts;
  copy.loops.push_back({cuts, copy.piece_bytes, copy.piece_bytes});
}

}  // namespace

StridedCopy plan_copy(const std::vector<int64_t>& dims, int64_t element_bytes,
                      const std::vector<int64_t>& from_strides,
                      const std::vector<int64_t>& to_strides) {
  StridedCopy copy{.loops = {}, .piece_bytes = element_bytes};
  std::vector<StridedCopy::Loop> loops;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 0) return {};
    if (dims[axis] == 1) continue;
    loops.push_back(
        {dims[axis], from_strides[axis] * element_bytes, to_strides[axis] * element_bytes});
  }
  // Loops over ascending destination addresses, whatever the order of the dimensions.
  std::stable_sort(loops.begin(), loops.end(), [](const auto& left, const auto& right) {
    return left.to_step > right.to_step;
  });
  while (!loops.empty()) {
    const StridedCopy::Loop inner = loops.back();
    loops.pop_back();
    const bool has_inner = !copy.loops.empty();
    const int64_t from_end =
        has_inner ? copy.loops.back().count * copy.loops.back().from_step : copy.piece_bytes;
    const int64_t to_end =
        has_inner ? copy.loops.back().count * copy.loops.back().to_step : copy.piece_bytes;
    if (inner.from_step != from_end || inner.to_step != to_end) {
      copy.loops.push_back(inner);
    } else if (has_inner) {
      copy.loops.back().count *= inner.count;
    } else {
      copy.piece_bytes *= inner.count;
    }
  }
  std::reverse(copy.loops.begin(), copy.loops.end());
  cut_long_piece(copy);
  return copy;
}

void run(const StridedCopy& copy, const void* from, void* to, ThreadPool& pool) {
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  if (copy.piece_bytes == 0) return;
  if (copy.loops.empty()) {
    std::memcpy(target, source, static_cast<size_t>(copy.piece_bytes));
    return;
  }
  int64_t pieces = 1;
  for (const StridedCopy::Loop& loop : copy.loops) pieces *= loop.count;
  const StridedCopy::Loop& innermost = copy.loops.back();
  pool.parallel_for(pieces, kGrainBytes / copy.piece_bytes + 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end;) {
      const char* row = source;
      char* to_row = target;
      int64_t rest = piece;
      for (auto loop = copy.loops.rbegin(); loop != copy.loops.rend(); ++loop) {
        row += rest % loop->count * loop->from_step;
        to_row += rest % loop->count * loop->to_step;
        rest /= loop->count;
      }
      const int64_t count = std::min(end - piece, innermost.count - piece % innermost.count);
      copy_row(row, to_row, innermost, count, copy.piece_bytes);
      piece += count;
    }
  });
}

}  // namespace tessera
