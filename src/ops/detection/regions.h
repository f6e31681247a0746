// Shared by RoiAlign, MaxRoiPool and CropAndResize: regions of feature maps [N, C, H, W], each of
// which becomes a feature map of one size.
#pragma once

#include "ops/op.h"

namespace tessera::ops {

// Sets output 0, of the element type of input 0, to [regions, C, height, width]. Checks input 0,
// the feature maps; input 1, the regions, `numbers` for each; and input 2, if the op has it, the
// index of the feature map of each region. Throws InvalidModel.
void infer_regions(InferContext& context, int64_t numbers, const Dim& height, const Dim& width);

// The attribute `name`, which is a size; fail()s if it is less than 1.
int64_t positive_attribute(const InferContext& context, const char* name);

// `image`, the index of a feature map in input 0 that `region` names. call.fail()s if there is no
// such feature map.
int64_t checked_image(const KernelCall& call, int64_t region, int64_t image);

// The sizes of the feature maps and of the results.
struct RegionSizes {
  int64_t regions = 0;
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t output_height = 0;
  int64_t output_width = 0;

  int64_t input_plane() const { return height * width; }
  int64_t output_plane() const { return output_height * output_width; }
};
RegionSizes region_sizes(const KernelCall& call);

}  // namespace tessera::ops
