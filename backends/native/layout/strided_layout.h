// The offsets of the elements of a tensor in a layout, as axes with strides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/backend.h"

namespace tessera::native {

// All strides count elements. In layouts with blocks of channels, axis 1 counts blocks and the
// lanes of a block are an additional last axis, in which padding counts as elements.
struct StridedLayout {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  int64_t block = 1;  // channels per step along axis 1

  int64_t elements() const;
};

// Throws Failure (TESSERA_UNSUPPORTED) if the layout does not hold tensors of this rank.
StridedLayout strided_layout(const std::string& layout, const std::vector<int64_t>& dims);

// Whether the layouts with channels hold tensors of this type.
bool has_channels(const plugin::Type& type);

// The layouts that all backends share, the default one first.
inline const std::vector<std::string> kSharedLayouts = {TESSERA_LAYOUT_DEFAULT, "nhwc", "nchw8c",
                                                        "nchw16c"};

}  // namespace tessera::native
