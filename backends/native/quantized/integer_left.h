// The left side of a product of bytes: where the loops find the rows that they multiply. They read
// the tensor itself if it has their form. Otherwise rows of a matrix are copied block by block, and
// the input of a convolution is copied as a whole, once, with the padding beside its rows.
#pragma once

#include <cstdint>

#include "quantized/integer_kernels.h"
#include "quantized/integer_product.h"
#include "tessera/backend.h"

namespace tessera::native {

// How rows are found: the same for all runs of a kernel.
class LeftAccess {
 public:
  LeftAccess(const IntegerProduct& product, const IntegerLoops& loops, bool is_signed);

  // A row consists of this many runs, each of neighbouring elements.
  int64_t runs() const { return runs_; }
  int64_t run_elements() const { return product_.depth / runs_; }
  int64_t run_steps() const;

  // The bytes that a row adds to the working set of a block.
  int64_t row_bytes() const;
  // Memory for all blocks, and for one of `rows` rows.
  int64_t shared_bytes() const;
  int64_t block_bytes(int64_t rows) const;

 protected:
  enum class Way : uint8_t { InPlace, Copied, Staged };

  // Of a copied row.
  int64_t line_bytes() const;
  // A run of padding.
  int64_t padding_bytes() const;
  int64_t staged_columns() const { return product_.patches.columns.reach(); }
  int64_t staged_row_bytes() const;
  int64_t images() const;

  const IntegerProduct& product_;
  const IntegerLoops& loops_;
  Way way_ = Way::Copied;
  int64_t runs_ = 1;
  int64_t bytes_ = 1;  // of an element, as the loops read it
};

// The rows of one run of a kernel.
class LeftRows : public LeftAccess {
 public:
  // `shared` has shared_bytes().
  LeftRows(const IntegerProduct& product, const IntegerLoops& loops, const LeftElements& elements,
           const uint8_t* from, uint8_t* shared);

  // Fills the shared memory, before all blocks.
  void prepare(plugin::RunContext& context) const;

  // The addresses of the runs of some rows, row by row. `memory` has block_bytes() of these rows.
  const uint8_t* const* find(int64_t product, int64_t row, int64_t rows, uint8_t* memory) const;

  // The sums of rows that were found, minus those of as many zero points.
  void sum(const uint8_t* const* found, int64_t rows, int32_t* sums) const;

 private:
  void stage_row(int64_t row, uint8_t* to) const;
  void fill(int64_t count, uint8_t* to) const;
  void copy_line(const uint8_t* from, uint8_t* to) const;
  void find_patches(int64_t product, int64_t row, int64_t rows, const uint8_t** to) const;
  void find_patches_of_line(int64_t product, int64_t line, int64_t column, int64_t count,
                            const uint8_t** to) const;

  const LeftElements& elements_;
  const uint8_t* from_;
  uint8_t* shared_;
};

}  // namespace tessera::native
