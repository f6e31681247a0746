// What the commands print with --json; docs/formats/json.md has every key.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/element.h"
#include "tessera/tessera.h"

namespace tessera::cli {

using Json = nlohmann::ordered_json;

// The version of what docs/formats/json.md says. A key that is new does not change it; one that is
// gone, or means something else, does.
inline constexpr int kJsonFormat = 1;

// What a command prints: the object `json` with its "format" before all other keys, indented, with
// a newline at its end. Names may hold any bytes: what is no UTF-8 is replaced, so that the result
// is always valid.
std::string json_text(const Json& json);

// The same without "format", for files whose format is told elsewhere.
std::string json_file_text(const Json& json);

// {"value", "type", "shape"}: a dimension is a number or the name of an unknown one; the shape is
// null where not even the rank is known.
Json to_json(const ValueDescription& value);
Json to_json(const std::vector<ValueDescription>& values);

// {"value", "type", "shape"} of a tensor.
Json to_json(const std::string& name, const Tensor& tensor);

// "not_built" of "not built": how an enumerator is spelled.
std::string json_key(std::string words);

// Exact, as far as JSON can: it has no NaN and no infinity, which become null.
Json number_json(WideNumber number);

// Null for nullopt.
Json optional_json(const std::optional<int64_t>& number);
Json optional_json(const std::optional<double>& number);

// All times in JSON are in microseconds. Null for nullopt, and for infinity.
Json microseconds_json(const std::optional<double>& seconds);

// {"error": {"kind", "where", "message"}}; the kind is "invalid_argument" for InvalidArgument.
Json error_json(ErrorKind kind, const std::string& where, const std::string& message);

}  // namespace tessera::cli
