// MaxRoiPool: the maximum of each bin of a region of interest, as in Girshick, "Fast R-CNN", 2015.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory_resource>
#include <vector>

#include "ops/convert_element.h"
#include "ops/detection/regions.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr int64_t kRegionNumbers = 5;  // image, x1, y1, x2, y2

void infer_max_roi_pool(InferContext& context) {
  const std::vector<int64_t>& shape = context.node().attributes.get_ints("pooled_shape");
  if (shape.size() != 2 || std::ranges::any_of(shape, [](int64_t size) { return size < 1; })) {
    context.fail("expected a 'pooled_shape' of a height and a width of at least 1, found " +
                 text(shape_from(shape)));
  }
  infer_regions(context, kRegionNumbers, shape[0], shape[1]);
}

// The elements [begin, end) of one axis that a bin covers.
struct BinRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// One axis of a region, divided into bins. Both borders of a region are elements of it. Bins may
// overlap by one element; whether they do follows from the rounding of float32, as elsewhere.
template <class Real>
class PooledAxis {
 public:
  PooledAxis(Real low, Real high, Real scale, int64_t bins, int64_t length)
      : start_(whole(low * scale)), length_(length) {
    const int64_t extent = std::max<int64_t>(1, whole(high * scale) - start_ + 1);
    bin_ = static_cast<Real>(extent) / static_cast<Real>(bins);
  }

  BinRange at(int64_t bin) const {
    const Real low = std::floor(static_cast<Real>(bin) * bin_);
    const Real high = std::ceil(static_cast<Real>(bin + 1) * bin_);
    return {std::clamp<int64_t>(start_ + static_cast<int64_t>(low), 0, length_),
            std::clamp<int64_t>(start_ + static_cast<int64_t>(high), 0, length_)};
  }

 private:
  static int64_t whole(Real position) { return from_double<int32_t>(std::round(position)); }

  int64_t start_ = 0;
  int64_t length_ = 0;
  Real bin_ = 0;
};

// 0 for a bin without elements; NaN counts as larger than everything, as in MaxPool.
template <class T>
T largest_in_bin(const T* plane, int64_t width, BinRange rows, BinRange columns) {
  if (rows.begin >= rows.end || columns.begin >= columns.end) return T(0);
  compute_t<T> largest = -std::numeric_limits<compute_t<T>>::infinity();
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t column = columns.begin; column < columns.end; ++column) {
      const auto value = static_cast<compute_t<T>>(plane[row * width + column]);
      const bool is_larger = static_cast<int>(value > largest) | static_cast<int>(value != value);
      largest = is_larger ? value : largest;
    }
  }
  return static_cast<T>(largest);
}

// What the bins of one region cover: first the rows, then the columns.
template <class T>
void find_bins(const KernelCall& call, const RegionSizes& sizes, int64_t region, BinRange* bins) {
  using Real = compute_t<T>;
  const T* box = call.inputs[1].as<T>().data() + region * kRegionNumbers;
  const auto number = [&](int64_t index) { return static_cast<Real>(box[index]); };
  const Real scale = call.node.attributes.get_float("spatial_scale");
  const PooledAxis<Real> vertical(number(2), number(4), scale, sizes.output_height, sizes.height);
  const PooledAxis<Real> horizontal(number(1), number(3), scale, sizes.output_width, sizes.width);
  for (int64_t row = 0; row < sizes.output_height; ++row) *bins++ = vertical.at(row);
  for (int64_t column = 0; column < sizes.output_width; ++column) *bins++ = horizontal.at(column);
}

template <class T>
void pool_region(const KernelCall& call, const RegionSizes& sizes, int64_t region, int64_t channel,
                 const BinRange* rows) {
  const T* box = call.inputs[1].as<T>().data() + region * kRegionNumbers;
  const int64_t image = checked_image(call, region, from_double<int64_t>(to_double(box[0])));
  const BinRange* columns = rows + sizes.output_height;
  const T* plane =
      call.inputs[0].as<T>().data() + (image * sizes.channels + channel) * sizes.input_plane();
  T* target =
      call.outputs[0].as<T>().data() + (region * sizes.channels + channel) * sizes.output_plane();
  for (int64_t row = 0; row < sizes.output_height; ++row) {
    for (int64_t column = 0; column < sizes.output_width; ++column) {
      *target++ = largest_in_bin(plane, sizes.width, rows[row], columns[column]);
    }
  }
}

void run_max_roi_pool(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const RegionSizes sizes = region_sizes(call);
  visit_floating(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t bins_of_region = sizes.output_height + sizes.output_width;
    std::pmr::vector<BinRange> bins(static_cast<size_t>(sizes.regions * bins_of_region),
                                    &call.scratch);
    for (int64_t region = 0; region < sizes.regions; ++region) {
      find_bins<T>(call, sizes, region, bins.data() + region * bins_of_region);
    }
    call.pool.parallel_for(sizes.regions * sizes.channels, 16, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t region = index / sizes.channels;
        pool_region<T>(call, sizes, region, index % sizes.channels,
                       bins.data() + region * bins_of_region);
      }
    });
  });
}

}  // namespace

std::vector<Op> max_roi_pool_ops() {
  return {{.name = "MaxRoiPool",
           .versions = {1, 22},
           .inputs = {{"X", "T"}, {"rois", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"pooled_shape", AttributeKind::Ints, std::nullopt, 1, kAnyVersion, true},
                          {"spatial_scale", AttributeKind::Float, 1.0F}},
           .infer = infer_max_roi_pool,
           .kernel = run_max_roi_pool}};
}

}  // namespace tessera::ops
