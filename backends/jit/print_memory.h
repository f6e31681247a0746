// Loads and stores of vectors in LLVM IR: consecutive elements, or elements in steps; of all lanes,
// or of those that a mask selects.
#pragma once

#include <string>

#include "ir_writer.h"
#include "processor.h"

namespace tessera::jit {

// Which lanes of a vector exist: those whose points are below the size of the row.
struct LaneMask {
  std::string lanes;  // one bit for each lane; "": all lanes
  // The mask for elements of one byte. A load or store of these may have more lanes than the
  // vector, because the smallest register has 16 bytes. The bits behind the vector are computed to
  // be 0, so nothing depends on how a compiler would widen a shorter vector.
  std::string bytes;
  int byte_lanes = 1;

  bool is_full() const { return lanes.empty(); }
};

// The elements of one access in one vector.
struct VectorPlace {
  const IrType* type = nullptr;
  std::string pointer;  // to the element of point 0 of the loop
  std::string index;    // of the first lane's point
  std::string stride;   // in bytes; "": consecutive elements
  LaneMask mask;
  int lanes = 1;
};

// The value in registers; 0 in lanes that the mask leaves out, whose elements are not touched.
std::string print_vector_load(IrWriter& writer, const VectorPlace& place);
// `is_streaming`: past the caches; then the elements begin at a multiple of the vector's size.
void print_vector_store(IrWriter& writer, const VectorPlace& place, const std::string& value,
                        bool is_streaming);

// Asks for the elements `distance` bytes behind those of the vector, which need not exist.
void print_prefetch(IrWriter& writer, const VectorPlace& place, const std::string& distance);

std::string print_scalar_load(IrWriter& writer, const IrType& type, const std::string& pointer);
void print_scalar_store(IrWriter& writer, const IrType& type, const std::string& pointer,
                        const std::string& value);

// A mask of the lanes whose points from `index` on are below `size`. `may_be_behind`: `index`
// itself may be more than `size`.
LaneMask print_mask(IrWriter& writer, const Target& target, const std::string& index,
                    const std::string& size, int lanes, bool may_be_behind);

}  // namespace tessera::jit
