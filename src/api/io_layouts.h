// The layouts in which a caller gives inputs and gets outputs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "tessera/tessera.h"

namespace tessera {

// BindOptions::layouts as forms: "csr", "row_sparse", with ":<capacity>" behind it or without,
// which means room for a tenth; "row_major" is no form. Values of `graph` tell types. Throws
// InvalidArgument for anything else.
std::map<std::string, SparseForm> parse_layouts(const Graph& graph,
                                                const std::map<std::string, std::string>& layouts);

// An input or output as the caller sees it.
struct IoValue {
  const ValueDescription& description;
  const std::optional<SparseForm>& form;  // nullopt: dense
};

// By value of `ids` the form in which the caller gives or gets it.
std::vector<std::optional<SparseForm>> io_forms(const Graph& graph,
                                                const std::vector<ValueId>& ids);

// The tensor whose bytes stand for `given` as `input`. Throws InvalidArgument where it is not of
// the type, shape and layout that was bound, or stores more than that has room for.
Tensor feed(const IoValue& input, const Tensor& given);
Tensor feed(const IoValue& input, const SparseTensor& given);
Tensor feed(const IoValue& input, const AnyTensor& given);

const std::vector<int64_t>& dims_of(const Tensor& tensor);
const std::vector<int64_t>& dims_of(const AnyTensor& tensor);

// Throws as feed() does where `given` is of another element type, or stored in another way;
// whatever its dimensions.
void check_kind(const IoValue& input, const Tensor& given);
void check_kind(const IoValue& input, const AnyTensor& given);

// The result whose bytes are `result`.
AnyTensor give(const IoValue& output, Tensor result);

}  // namespace tessera
