#include "grid.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include "offers.h"

namespace tessera::opencl {

using plugin::Failure;

namespace {

// Kernels are compiled for these numbers of axes. Fewer kinds of kernels are compiled if some have
// leading axes of one element.
constexpr std::array<size_t, 6> kRanks = {1, 2, 3, 4, 6, 8};
// In shorter rows, too many items of a group would have nothing to do: one item computes a row.
constexpr int64_t kMinRow = 48;

constexpr const char* kGridSource = R"(
#define GRID_PARAMETERS int rows, SIZES(size), int groups_per_row0, uint groups_per_row0_magic, \
  int groups_per_row0_shift
#define GRID_BASE(name) \
  const int name##_base_position = ROW_POSITION(grid_row, size, name##_stride);
#define GRID_INDEX (grid_row * LAST_AXIS(size) + grid_column)
#define GRID_POSITION(name) (name##_base_position + grid_column * name##_step)
#ifdef HAS_SHORT_ROWS
#define GRID_BEGIN const int grid_row = get_global_id(0);
#define GRID_LOOP \
  if (grid_row < rows) \
    for (int grid_column = 0; grid_column < LAST_AXIS(size); ++grid_column)
#else
#define GRID_BEGIN \
  const int grid_group = get_group_id(0); \
  const int grid_row = QUOTIENT(grid_group, groups_per_row0); \
  const int grid_column = \
      (grid_group - grid_row * groups_per_row0) * GROUP + (int)get_local_id(0);
#define GRID_LOOP if (grid_column < LAST_AXIS(size))
#endif
)";

// The position of (index) along axes [0, end), as an expression of OpenCL C in macros.
std::string position_text(size_t end) {
  if (end == 0) return "0";
  std::string index = "(index)";
  std::string text;
  for (size_t axis = end; axis-- > 1;) {
    const std::string size = "size##" + std::to_string(axis);
    const std::string quotient = "QUOTIENT(" + index + ", " + size + ")";
    text += "(" + index + " - " + quotient + " * " + size + ") * stride##" + std::to_string(axis) +
            " + ";
    index = quotient;
  }
  return "(" + text + index + " * stride##0)";
}

bool merges(const StridedSpace& space, size_t outer, size_t inner) {
  return std::all_of(space.strides.begin(), space.strides.end(), [&](const auto& strides) {
    return strides[outer] == strides[inner] * space.size[inner];
  });
}

void append_axis(StridedSpace& target, const StridedSpace& from, size_t axis) {
  target.size.push_back(from.size[axis]);
  for (size_t operand = 0; operand < from.strides.size(); ++operand) {
    target.strides[operand].push_back(from.strides[operand][axis]);
  }
}

// Adds leading axes of one element, so that the rank is one of kRanks.
StridedSpace extended(StridedSpace space) {
  const auto* rank = std::find_if(kRanks.begin(), kRanks.end(),
                                  [&](size_t known) { return known >= space.size.size(); });
  if (rank == kRanks.end()) {
    throw Failure(TESSERA_UNSUPPORTED, "walks through at most " + std::to_string(kRanks.back()) +
                                           " separate axes, found " +
                                           std::to_string(space.size.size()));
  }
  const size_t added = *rank - space.size.size();
  space.size.insert(space.size.begin(), added, 1);
  for (auto& strides : space.strides) strides.insert(strides.begin(), added, 0);
  return space;
}

}  // namespace

std::string axes_definitions(size_t rank) {
  std::string numbers;
  std::string sizes;
  for (size_t axis = 0; axis < rank; ++axis) {
    const std::string name = "name##" + std::to_string(axis);
    numbers += (axis == 0 ? "int " : ", int ") + name;
    sizes += (axis == 0 ? "int " : ", int ") + name;
    sizes += ", uint " + name + "##_magic, int " + name + "##_shift";
  }
  return define("AXES(name)", numbers) + define("SIZES(name)", sizes) +
         define("LAST_AXIS(name)", "name##" + std::to_string(rank - 1)) +
         define("QUOTIENT(number, size)",
                "((int)(mul_hi(2 * (uint)(number), size##_magic) >> size##_shift))") +
         define("POSITION(index, size, stride)", position_text(rank)) +
         define("ROW_POSITION(index, size, stride)", position_text(rank - 1));
}

std::vector<int32_t> divisors(const std::vector<int64_t>& sizes) {
  std::vector<int32_t> numbers;
  for (const int64_t size : sizes) {
    // Granlund and Montgomery, "Division by invariant integers using multiplication" (1994),
    // section 4. Dividends are below 2^31 and doubled, so that the number fits 32 bits for 1 too.
    const auto divisor = static_cast<uint64_t>(size);
    const auto bits = static_cast<int32_t>(std::bit_width(divisor - 1));
    const uint64_t magic = ((uint64_t{1} << (31 + bits)) + divisor - 1) / divisor;
    numbers.push_back(narrow(size));
    numbers.push_back(static_cast<int32_t>(static_cast<uint32_t>(magic)));
    numbers.push_back(bits);
  }
  return numbers;
}

StridedSpace merged(const StridedSpace& space) {
  StridedSpace result;
  result.strides.resize(space.strides.size());
  for (size_t axis = 0; axis < space.size.size(); ++axis) {
    if (space.size[axis] == 1) continue;
    append_axis(result, space, axis);
    const size_t last = result.size.size() - 1;
    if (last == 0 || !merges(result, last - 1, last)) continue;
    result.size[last - 1] *= result.size[last];
    result.size.pop_back();
    for (auto& strides : result.strides) {
      strides[last - 1] = strides[last];
      strides.pop_back();
    }
  }
  if (!result.size.empty()) return result;
  result.size = {1};
  for (auto& strides : result.strides) strides = {1};
  return result;
}

Grid make_grid(const StridedSpace& space, const std::vector<std::string_view>& names) {
  const StridedSpace axes = extended(merged(space));
  const int64_t row = axes.size.back();
  const int64_t count =
      std::accumulate(axes.size.begin(), axes.size.end(), int64_t{1}, std::multiplies<>());
  // Families size their grid before they ask for memory, which refuses empty tensors.
  if (count == 0) throw plugin::Failure(TESSERA_UNSUPPORTED, "computes tensors with elements only");
  const int64_t rows = count / row;
  const bool is_short = rows > 1 && row < kMinRow;
  const int64_t groups_per_row = groups_for(row, kGroupItems);
  Grid grid;
  grid.group_items = kGroupItems;
  grid.groups = is_short ? groups_for(rows, kGroupItems) : rows * groups_per_row;
  grid.definitions = axes_definitions(axes.size.size()) +
                     (is_short ? "#define HAS_SHORT_ROWS\n" : "") + kGridSource;
  grid.arguments = {narrow(rows), divisors(axes.size), divisors({groups_per_row})};
  for (size_t operand = 0; operand < names.size(); ++operand) {
    const std::string name(names[operand]);
    const int64_t step = axes.strides[operand].back();
    // Constant steps let compilers read and write whole vectors.
    const bool is_simple = step == 0 || step == 1;
    grid.definitions +=
        define(name + "_step", is_simple ? std::to_string(step) : "LAST_AXIS(" + name + "_stride)");
    grid.arguments.emplace_back(narrow(axes.strides[operand]));
  }
  return grid;
}

}  // namespace tessera::opencl
