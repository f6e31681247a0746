// The layouts in which a caller passes inputs and receives outputs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "tessera/tessera.h"

namespace tessera {

// RunOptions::layouts, by name of the value. Dense values in the host's memory are in neither.
struct IoLayouts {
  std::map<std::string, SparseForm> forms;
  std::map<std::string, std::string> devices;
};

// Parses RunOptions::layouts: "csr" or "row_sparse", optionally followed by ":<capacity>" (without
// it the capacity is a tenth of all elements or rows), or "row_major@<device>". `graph` has the
// types of the values. Throws InvalidArgument for any other text.
IoLayouts parse_layouts(const Graph& graph, const std::map<std::string, std::string>& layouts);

// An input or output in the form in which the caller passes or receives it.
struct IoValue {
  const ValueDescription& description;
  const std::optional<SparseForm>& form;  // nullopt: dense
};

// For each value of `ids`, the form in which the caller passes or receives it; nullopt: dense.
std::vector<std::optional<SparseForm>> io_forms(const Graph& graph,
                                                const std::vector<ValueId>& ids);

// Whether a value is a list or an optional: it has no shape, and a plan takes any of them.
bool has_no_shape(const ValueDescription& value);
// Whether a caller may leave it out, which then is an empty optional.
bool is_optional(const ValueDescription& value);

// Returns the tensor with the bytes of `given` as they are stored for `input`. Throws
// InvalidArgument if `given` does not have the bound type, shape and layout, or stores more than
// the capacity. Does not check the device of a dense tensor: IoBinding does.
Tensor feed(const IoValue& input, const Tensor& given);
Tensor feed(const IoValue& input, const SparseTensor& given);
Tensor feed(const IoValue& input, const AnyTensor& given);

const std::vector<int64_t>& dims_of(const Tensor& tensor);
const std::vector<int64_t>& dims_of(const AnyTensor& tensor);

// Throws as feed() does if `given` has another element type or storage format; does not check
// dimensions or devices.
void check_kind(const IoValue& input, const Tensor& given);
void check_kind(const IoValue& input, const AnyTensor& given);

// Returns the result in the form of `output`; `result` has its bytes.
AnyTensor give(const IoValue& output, Tensor result);

}  // namespace tessera
