// A table from keys to values of any element types: of LabelEncoder and CategoryMapper.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "graph/attribute.h"
#include "ops/number_index.h"
#include "tessera/tensor.h"

namespace tessera::ops {

class LookUpTable {
 public:
  // `keys` and `values` are lists of the same length, `missing` is one element of the type of
  // values. Of equal keys the first one counts.
  LookUpTable(Tensor keys, Tensor values, Tensor missing);

  // For each element of `input`, which is of the type of the keys, the value of its key, or
  // `missing`. Numbers are compared bit by bit, but each NaN equals each other one.
  Tensor look_up(const Tensor& input) const;

 private:
  // The element of keys; a number as its bits.
  int64_t find(std::string_view key) const;
  int64_t find(uint64_t bits) const;
  // For values that are numbers of kBytes bytes.
  template <size_t kBytes>
  void copy_found(const Tensor& input, Tensor& output) const;

  Tensor keys_;
  Tensor values_;
  Tensor missing_;
  std::unordered_map<std::string_view, int64_t> words_;  // if keys are strings, of keys_
  NumberIndex numbers_;
};

// Copies an element between tensors of the same type.
void copy_element(const Tensor& from, int64_t from_index, Tensor& to, int64_t to_index);

// An attribute that is a list of integers, floats or strings, as a tensor; is_empty() if the node
// leaves it out.
Tensor tensor_of_list(const Attributes& attributes, std::string_view name);

}  // namespace tessera::ops
