// The output of commands with --json; docs/formats/json.md documents every key.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "api/describe/description_fields.h"
#include "base/errors/check.h"
#include "cli/output/element.h"
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

// Same as json_text(), without "format", for files whose format is stated elsewhere.
std::string json_file_text(const Json& json);

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

template <class Description>
Json fields_json(const Description& description, const Json& computed = Json::object());

// A value of a description. `key` has its unit: with "_us", a number of seconds is converted.
template <class T>
Json field_json(const T& value, std::string_view key) {
  [[maybe_unused]] const bool is_time = key.ends_with("_us");
  if constexpr (kIsDescribed<T>) {
    return fields_json(value);
  } else if constexpr (std::is_enum_v<T>) {
    return json_key(std::string(name(value)));
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return value.string();
  } else if constexpr (std::is_same_v<T, Dimension>) {
    return value.value ? Json(*value.value) : Json(value.symbol);
  } else if constexpr (std::is_same_v<T, double>) {
    return is_time ? microseconds_json(value) : number_json(value);
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    return is_time ? microseconds_json(value) : optional_json(value);
  } else if constexpr (kIsOptional<T>) {
    return value ? field_json(*value, key) : Json(nullptr);
  } else if constexpr (kIsVector<T>) {
    Json json = Json::array();
    for (const auto& each : value) json.push_back(field_json(each, key));
    return json;
  } else {
    return value;
  }
}

// The object of a description, by its list in api/describe/description_fields.h. `computed` has the
// value of each ComputedKey of the list.
template <class Description>
Json fields_json(const Description& description, const Json& computed) {
  Json json = Json::object();
  size_t computed_count = 0;
  for_each_row<Description>([&]<class Row>(const Row& row) {
    if constexpr (std::is_same_v<Row, ComputedKey>) {
      json[row.key] = computed.at(row.key);
      ++computed_count;
    } else if constexpr (Row::kIsPrinted) {
      json[row.key] = field_json(description.*row.member, row.key);
    }
  });
  TESSERA_CHECK(computed_count == computed.size(), "each computed value has a key in the list");
  return json;
}

}  // namespace tessera::cli
