// What the commands print with --json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/element.h"
#include "tessera/tessera.h"

namespace tessera::cli {

using Json = nlohmann::ordered_json;

// Indented text with a newline at its end. Names may hold any bytes: what is no UTF-8 is replaced,
// so that the result is always valid.
std::string json_text(const Json& json);

// {"name", "type", "shape"}: a dimension is a number or the name of an unknown one; the shape is
// null where not even the rank is known.
Json to_json(const ValueDescription& value);
Json to_json(const std::vector<ValueDescription>& values);

// {"name", "type", "shape"} of a tensor.
Json to_json(const std::string& name, const Tensor& tensor);

// JSON has no NaN and no infinity: they become "nan", "inf" and "-inf".
Json number_json(WideNumber number);

}  // namespace tessera::cli
