// Tensors and descriptions of values as the C interface passes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tessera/descriptions.h"
#include "tessera/tensor.h"
#include "tessera/tessera_c.h"

namespace tessera::capi {

// A tensor in memory of the caller, who must keep it alive; strings and lists are copies. Throws
// InvalidArgument for a type, rank, dimension, address or size that cannot be.
struct GivenTensor {
  std::string name;
  Tensor tensor;
};
// `kind`: "input" or "output"; `argument`: "inputs[0]".
GivenTensor read_tensor(const tessera_tensor* given, const char* kind, const std::string& argument);

// `count` inputs, which follow each other at the distance of the first one's struct_size. Throws
// InvalidArgument also if a name is given twice.
std::map<std::string, Tensor> read_tensors(const tessera_tensor* given, size_t count);

// A tensor with the arrays that the C struct points to: of strings, and of the elements of a list.
class ShownTensor {
 public:
  ShownTensor(Tensor tensor, std::string name);

  // Valid as long as this object, which must not be moved meanwhile.
  tessera_tensor view() const;

 private:
  Tensor tensor_;
  std::string name_;
  std::vector<tessera_string> strings_;
  std::vector<ShownTensor> elements_;  // which stay where they are
  std::vector<tessera_tensor> views_;  // of elements_
};

// A description with the arrays that the C struct points to. It is not copied, because they point
// into it.
class DescribedValue {
 public:
  explicit DescribedValue(ValueDescription value);
  DescribedValue(DescribedValue&&) = default;
  DescribedValue& operator=(DescribedValue&&) = default;
  DescribedValue(const DescribedValue&) = delete;
  DescribedValue& operator=(const DescribedValue&) = delete;
  ~DescribedValue() = default;

  // Valid as long as this object, which must not be moved meanwhile.
  tessera_value_description view() const;

 private:
  ValueDescription value_;
  std::vector<int64_t> dims_;
  std::vector<const char*> symbols_;  // of value_.shape, whose elements stay where they are
};

std::vector<DescribedValue> describe(const std::vector<ValueDescription>& values);

}  // namespace tessera::capi
