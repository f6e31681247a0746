// Fewer buffers whose arrangement is one of the given ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/packing_grid.h"

namespace tessera {

// One of the buffers that make up another one.
struct MergedPart {
  size_t buffer = 0;
  int64_t offset = 0;  // from the beginning of the whole
};

struct MergedBuffers {
  std::vector<GridBuffer> buffers;
  std::vector<std::vector<MergedPart>> parts;  // by buffer of the above
};

// Joins what may well lie together: some that live equally long, one above the other, and some that
// begin where these end and are as high, take the same place one after the other. The fewest first,
// and again with what came of it, until nothing fits together any more; last, what lives equally
// long is one. What is a rectangle that was cut in two again and again comes out as a whole. Every
// arrangement of what is left is one of `buffers`, but not the other way round. Pure.
MergedBuffers merge_buffers(std::span<const GridBuffer> buffers);

// One offset for each of the `count` buffers that were merged, from those of the merged ones.
std::vector<int64_t> offsets_of_parts(const MergedBuffers& merged, std::span<const int64_t> offsets,
                                      size_t count);

}  // namespace tessera
