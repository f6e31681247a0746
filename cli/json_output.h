// The output of commands with --json; docs/formats/json.md documents every key.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/element.h"
#include "tessera/tessera.h"

namespace tessera::cli {

using Json = nlohmann::ordered_json;

// The version of the format in docs/formats/json.md. It changes if a key is removed or changes its
// meaning, but not if a key is added.
inline constexpr int kJsonFormat = 1;

// A command's output: the object `json`, indented, with "format" as its first key and a newline at
// the end. Names may contain any bytes: invalid UTF-8 is replaced, so that the result is always
// valid.
std::string json_text(const Json& json);

// The same without "format", for files whose format is stated elsewhere.
std::string json_file_text(const Json& json);

// {"value", "type", "shape"}: a dimension is a number or the name of an unknown dimension; the
// shape is null if not even the rank is known.
Json to_json(const ValueDescription& value);
Json to_json(const std::vector<ValueDescription>& values);

// {"value", "type", "shape"} of a tensor.
Json to_json(const std::string& name, const Tensor& tensor);

// An enumerator's spelling in JSON: "not_built" for "not built".
std::string json_key(std::string words);

// As exact as JSON allows: NaN and infinities, which JSON lacks, become null.
Json number_json(WideNumber number);

// Null for nullopt.
Json optional_json(const std::optional<int64_t>& number);
Json optional_json(const std::optional<double>& number);

// All times in JSON are in microseconds. Null for nullopt, and for infinity.
Json microseconds_json(const std::optional<double>& seconds);

// {"error": {"kind", "where", "message"}}; the kind is "invalid_argument" for InvalidArgument.
Json error_json(ErrorKind kind, const std::string& where, const std::string& message);

}  // namespace tessera::cli
