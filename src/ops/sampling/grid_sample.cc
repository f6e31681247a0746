// GridSample: interpolates feature maps at positions that an input gives, as in Jaderberg et al.,
// "Spatial Transformer Networks", 2015. Domain com.microsoft has the op, too, as it was before ONNX
// took it over.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/convolution/window.h"
#include "ops/domains.h"
#include "ops/op.h"
#include "ops/visit_type.h"
#include "tessera/error.h"

namespace tessera::ops {
namespace {

// --- Attributes ----------------------------------------------------------------------------------

constexpr int kFirstAnyRankVersion = 20;  // before, modes have the names of two dimensions

enum class GridMode : uint8_t { Nearest, Linear, Cubic };
enum class GridPadding : uint8_t { Zeros, Border, Reflection };

template <class Enum>
using EnumNames = std::array<std::pair<std::string_view, Enum>, 3>;

constexpr EnumNames<GridMode> kGridModes = {
    {{"linear", GridMode::Linear}, {"nearest", GridMode::Nearest}, {"cubic", GridMode::Cubic}}};
constexpr EnumNames<GridMode> kPlaneGridModes = {
    {{"bilinear", GridMode::Linear}, {"nearest", GridMode::Nearest}, {"bicubic", GridMode::Cubic}}};
constexpr EnumNames<GridPadding> kGridPaddings = {{{"zeros", GridPadding::Zeros},
                                                   {"border", GridPadding::Border},
                                                   {"reflection", GridPadding::Reflection}}};

template <class Enum>
Enum read_name(const Node& node, const char* attribute, const EnumNames<Enum>& names) {
  const std::string& given = node.attributes.get_string(attribute);
  const auto found = std::ranges::find(names, given, &std::pair<std::string_view, Enum>::first);
  if (found != names.end()) return found->second;
  std::string known;
  for (const auto& [name, value] : names) {
    known += (known.empty() ? "'" : ", '") + std::string(name) + "'";
  }
  throw Error(
      ErrorKind::InvalidModel, location_of(node),
      std::string("expected ") + attribute + " to be one of " + known + ", found '" + given + "'");
}

struct Sampling {
  GridMode mode = GridMode::Linear;
  GridPadding padding = GridPadding::Zeros;
  bool aligns_corners = false;  // -1 and 1 are the centres of the outermost elements
};

Sampling sampling_of(const Node& node) {
  const bool is_any_rank = node.domain.empty() && node.version >= kFirstAnyRankVersion;
  return {.mode = read_name(node, "mode", is_any_rank ? kGridModes : kPlaneGridModes),
          .padding = read_name(node, "padding_mode", kGridPaddings),
          .aligns_corners = node.attributes.get_int("align_corners") != 0};
}

// --- The rule ------------------------------------------------------------------------------------

void check_sampled(const InferContext& context, const Sampling& sampling, const Shape& input) {
  check_spatial_rank(context.node(), input.size());
  const bool is_empty =
      std::any_of(input.begin() + 2, input.end(), [](const Dim& dim) { return dim == Dim(0); });
  if (is_empty && sampling.padding != GridPadding::Zeros) {
    context.fail_input(
        0, "expected elements along each spatial axis for this padding_mode, found " + text(input));
  }
}

void infer_grid_sample(InferContext& context) {
  const Sampling sampling = sampling_of(context.node());
  if (context.element(0) == DataType::String && sampling.mode != GridMode::Nearest) {
    context.fail_input(0, "expected numbers for this mode, found strings");
  }
  const Shape* input = context.shape(0);
  const Shape* grid = context.shape(1);
  context.set_output(0, context.element(0));
  if (input != nullptr) check_sampled(context, sampling, *input);
  if (input == nullptr || grid == nullptr) return;
  const auto spatial = static_cast<int64_t>(input->size()) - 2;
  if (grid->size() != input->size() || !can_be_equal({grid->back()}, {Dim(spatial)}) ||
      !can_be_equal({grid->front()}, {input->front()})) {
    context.fail_input(1, "expected positions of " + std::to_string(spatial) +
                              " numbers in a tensor of rank " + std::to_string(input->size()) +
                              " for input 'X' (" + text(*input) + "), found " + text(*grid));
  }
  Shape output = {(*input)[0], (*input)[1]};
  output.insert(output.end(), grid->begin() + 1, grid->end() - 1);
  context.set_output(0, context.element(0), std::move(output));
}

// --- Positions -----------------------------------------------------------------------------------

// Mirrors `position` at the borders as often as needed. `position` is finite.
double reflected(double position, double low, double high) {
  const double extent = high - low;
  if (!(extent > 0)) return low;
  const double distance = std::fmod(position < low ? low - position : position - low, 2 * extent);
  return low + (distance > extent ? 2 * extent - distance : distance);
}

// One spatial axis of the input.
struct GridAxis {
  int64_t length = 1;
  int64_t stride = 1;
  double low = -0.5;  // the borders
  double high = 0.5;
};

GridAxis grid_axis(const Sampling& sampling, int64_t length, int64_t stride) {
  const double beyond = sampling.aligns_corners ? 0 : 0.5;
  return {length, stride, -beyond, static_cast<double>(length - 1) + beyond};
}

// The position of coordinate `number` of the grid. Computed in the type of the grid, float32 for
// 16-bit types, as in other runtimes, so that ties round the same way.
template <class Real>
double position_of(const Sampling& sampling, const GridAxis& axis, Real number) {
  const auto length = static_cast<Real>(axis.length);
  if (sampling.aligns_corners) return (number + 1) / 2 * (length - 1);
  return ((number + 1) * length - 1) / 2;
}

// `position` rounded if the mode is Nearest, and made to fit an integer without a change of the
// result. Otherwise the elements around a position are padded, not the position itself: so a cubic
// interpolation just beyond the border still sees what is inside, as in PyTorch and ONNX Runtime.
double adjusted(const Sampling& sampling, const GridAxis& axis, double position) {
  if (sampling.mode == GridMode::Nearest) position = std::nearbyint(position);
  const bool is_reflected = sampling.padding == GridPadding::Reflection;
  if (is_reflected && std::isfinite(position)) {
    const bool is_inside = position >= axis.low && position <= axis.high;
    return is_inside ? position : reflected(position, axis.low, axis.high);
  }
  // From three elements beyond the border on, everything is padding. NaN counts as such.
  if (std::isnan(position) || is_reflected) return sampling.padding == GridPadding::Zeros ? -3 : 0;
  return std::clamp<double>(position, -3, static_cast<double>(axis.length) + 2);
}

// The offset of element `index` along an axis, which may lie outside; -1 for nothing.
int64_t padded_offset(const Sampling& sampling, const GridAxis& axis, int64_t index) {
  const bool is_inside = index >= 0 && index < axis.length;
  if (!is_inside && sampling.padding == GridPadding::Zeros) return -1;
  if (!is_inside && sampling.padding == GridPadding::Reflection) {
    index = static_cast<int64_t>(reflected(static_cast<double>(index), axis.low, axis.high));
  }
  return std::clamp<int64_t>(index, 0, axis.length - 1) * axis.stride;
}

// --- Taps ----------------------------------------------------------------------------------------

// Elements that contribute to a result, with their weights.
template <size_t kMost>
struct Contributions {
  std::array<int64_t, kMost> offsets = {};
  std::array<double, kMost> weights = {};
  size_t count = 0;

  void add(int64_t offset, double weight) {
    offsets[count] = offset;
    weights[count++] = weight;
  }
};

constexpr size_t kMostAlongAxis = 4;
using AxisContributions = Contributions<kMostAlongAxis>;

// The kernel of Keys, "Cubic convolution interpolation for digital image processing", 1981, at the
// distances 1 + t, t, 1 - t and 2 - t.
std::array<double, 4> cubic_weights(double t) {
  constexpr double a = -0.75;
  const auto near = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(1 + t), near(t), near(1 - t), far(2 - t)};
}

AxisContributions along_axis(const Sampling& sampling, const GridAxis& axis, double position) {
  AxisContributions result;
  const double place = adjusted(sampling, axis, position);
  const double below = std::floor(place);
  const double t = place - below;
  std::array<double, kMostAlongAxis> weights = {1};
  int64_t first = static_cast<int64_t>(below);
  size_t count = 1;
  if (sampling.mode == GridMode::Linear) {
    weights = {1 - t, t};
    count = 2;
  } else if (sampling.mode == GridMode::Cubic) {
    weights = cubic_weights(t);
    count = 4;
    --first;
  }
  for (size_t tap = 0; tap < count; ++tap) {
    const int64_t offset = padded_offset(sampling, axis, first + static_cast<int64_t>(tap));
    if (offset >= 0) result.add(offset, weights[tap]);
  }
  return result;
}

constexpr size_t kMostInBlock = 1024;

// What contributes to each of some consecutive points.
struct PointBlock {
  Contributions<kMostInBlock> taps;
  std::array<size_t, kMostInBlock> ends = {};  // of the taps of each point
};

// --- The kernel ----------------------------------------------------------------------------------

// Input and grid with leading axes of length 1 added.
struct GridProblem {
  Sampling sampling;
  std::array<GridAxis, kMaxSpatialAxes> axes;
  size_t first_axis = 0;  // those before are added
  int64_t channels = 0;
  int64_t plane = 1;   // elements of one channel of the input
  int64_t points = 1;  // positions for each batch item
  int64_t block = 1;   // positions that fit into a PointBlock
};

GridProblem grid_problem(const KernelCall& call) {
  const auto input = call.inputs[0].dims;
  GridProblem problem;
  problem.sampling = sampling_of(call.node);
  problem.channels = input[1];
  problem.first_axis = kMaxSpatialAxes + 2 - input.size();
  int64_t taps = 1;
  for (size_t axis = input.size() - 1; axis >= 2; --axis) {
    problem.axes[axis - 2 + problem.first_axis] =
        grid_axis(problem.sampling, input[axis], problem.plane);
    problem.plane *= input[axis];
    problem.points *= call.outputs[0].dims[axis];
    if (problem.sampling.mode == GridMode::Linear) taps *= 2;
    if (problem.sampling.mode == GridMode::Cubic) taps *= 4;
  }
  problem.block = static_cast<int64_t>(kMostInBlock) / taps;
  return problem;
}

// Adds the taps of one point: each combination of those along its axes.
void add_point(PointBlock& block, size_t point,
               const std::array<AxisContributions, kMaxSpatialAxes>& along) {
  const auto& [planes, rows, columns] = along;
  for (size_t plane = 0; plane < planes.count; ++plane) {
    for (size_t row = 0; row < rows.count; ++row) {
      const int64_t offset = planes.offsets[plane] + rows.offsets[row];
      const double weight = planes.weights[plane] * rows.weights[row];
      for (size_t column = 0; column < columns.count; ++column) {
        block.taps.add(offset + columns.offsets[column], weight * columns.weights[column]);
      }
    }
  }
  block.ends[point] = block.taps.count;
}

// Finds the taps of points [begin, begin + count) of the whole grid.
template <class G>
void find_taps(const GridProblem& problem, const G* grid, int64_t begin, int64_t count,
               PointBlock& block) {
  const auto numbers = static_cast<int64_t>(kMaxSpatialAxes - problem.first_axis);
  block.taps.count = 0;
  for (int64_t point = 0; point < count; ++point) {
    // The last axis comes first.
    const G* position = grid + (begin + point + 1) * numbers;
    std::array<AxisContributions, kMaxSpatialAxes> along;
    for (size_t axis = 0; axis < kMaxSpatialAxes; ++axis) {
      if (axis < problem.first_axis) {
        along[axis].add(0, 1);
        continue;
      }
      --position;
      const auto number = static_cast<compute_t<G>>(*position);
      along[axis] = along_axis(problem.sampling, problem.axes[axis],
                               position_of(problem.sampling, problem.axes[axis], number));
    }
    add_point(block, static_cast<size_t>(point), along);
  }
}

// Calls visit(batch, first, count, block) for blocks of points of each batch item.
template <class Visit>
void for_each_block(const KernelCall& call, const GridProblem& problem, const Visit& visit) {
  const int64_t all = call.outputs[0].dims[0] * problem.points;
  call.pool.parallel_for(all, problem.block, [&](int64_t begin, int64_t end) {
    PointBlock block;
    while (begin < end) {
      const int64_t batch = begin / problem.points;
      const int64_t count =
          std::min({end - begin, problem.block, (batch + 1) * problem.points - begin});
      visit_floating(call.inputs[1].type, [&](auto tag) {
        using G = typename decltype(tag)::type;
        find_taps(problem, call.inputs[1].as<G>().data(), begin, count, block);
      });
      visit(batch, begin - batch * problem.points, count, block);
      begin += count;
    }
  });
}

// Sets `count` results of each channel from `first` on by value(plane, first tap, end of taps).
template <class T, class Value>
void store_points(const KernelCall& call, const GridProblem& problem, const Value& value) {
  const T* input = call.inputs[0].as<T>().data();
  T* output = call.outputs[0].as<T>().data();
  for_each_block(call, problem,
                 [&](int64_t batch, int64_t first, int64_t count, const PointBlock& block) {
                   for (int64_t channel = batch * problem.channels;
                        channel < (batch + 1) * problem.channels; ++channel) {
                     const T* plane = input + channel * problem.plane;
                     T* target = output + channel * problem.points + first;
                     size_t tap = 0;
                     for (int64_t point = 0; point < count; ++point) {
                       const size_t end = block.ends[static_cast<size_t>(point)];
                       target[point] = value(plane, block.taps, tap, end);
                       tap = end;
                     }
                   }
                 });
}

void run_grid_sample(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const GridProblem problem = grid_problem(call);
  using Taps = Contributions<kMostInBlock>;
  if (problem.sampling.mode == GridMode::Nearest) {
    return visit_size(call.inputs[0].type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      store_points<T>(call, problem,
                      [](const T* plane, const Taps& taps, size_t begin, size_t end) {
                        return begin == end ? T(0) : plane[taps.offsets[begin]];
                      });
    });
  }
  const auto interpolate = [&](auto tag, const auto& convert) {
    using T = typename decltype(tag)::type;
    store_points<T>(call, problem, [&](const T* plane, const Taps& taps, size_t tap, size_t end) {
      double sum = 0;
      for (; tap < end; ++tap) sum += taps.weights[tap] * to_double(plane[taps.offsets[tap]]);
      return convert(sum);
    });
  };
  if (call.inputs[0].type == DataType::Bool) {
    return interpolate(TypeTag<uint8_t>{}, [](double sum) { return uint8_t{sum != 0}; });
  }
  visit_numeric(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    interpolate(tag, [](double sum) { return from_double<T>(sum); });
  });
}

Op grid_sample_op() {
  return {.name = "GridSample",
          .inputs = {{"X", "T1"}, {"grid", "T2"}},
          .outputs = {{"Y", "T1"}},
          .attributes = {{"align_corners", AttributeKind::Int, int64_t{0}},
                         {"padding_mode", AttributeKind::String, "zeros"}},
          .infer = infer_grid_sample,
          .kernel = run_grid_sample};
}

}  // namespace

std::vector<Op> grid_sample_ops() {
  Op op = grid_sample_op();
  op.versions = {16, kFirstAnyRankVersion, 22};
  op.type_variables = {{"T1", kAllTypesAndStrings}, {"T2", kFloatTypes}};
  op.attributes.push_back({"mode", AttributeKind::String, "bilinear", 1, kFirstAnyRankVersion - 1});
  op.attributes.push_back({"mode", AttributeKind::String, "linear", kFirstAnyRankVersion});
  Op earlier = grid_sample_op();
  earlier.domain = kMicrosoftDomain;
  earlier.versions = {1};
  earlier.inputs[1] = {"Grid", "T1"};
  earlier.type_variables = {{"T1", kFloatTypes}};
  earlier.attributes.push_back({"mode", AttributeKind::String, "bilinear"});
  return {op, earlier};
}

}  // namespace tessera::ops
