#include "cli/output/json_output.h"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace tessera::cli {
namespace {

// Converts "InvalidArgument" to "invalid_argument".
std::string snake_case(std::string_view name) {
  std::string text;
  for (const char letter : name) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(letter)) != 0;
    if (is_upper && !text.empty()) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

}  // namespace

std::string json_text(const Json& json) {
  TESSERA_CHECK(json.is_object(), "what a command prints has a place for its format");
  Json printed = {{"format", kJsonFormat}};
  for (const auto& [key, value] : json.items()) printed[key] = value;
  return json_file_text(printed);
}

std::string json_file_text(const Json& json) {
  return json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

std::string json_key(std::string words) {
  std::replace(words.begin(), words.end(), ' ', '_');
  return words;
}

Json to_json(const std::string& tensor_name, const Tensor& tensor) {
  return {{"value", tensor_name}, {"type", name(tensor.type())}, {"shape", tensor.dims()}};
}

Json number_json(WideNumber number) {
  if (!std::isfinite(number)) return nullptr;
  // A double cannot represent every 64-bit integer, so integers are written as integers.
  if (number == std::trunc(number) && number >= -0x1p63L && number < 0x1p63L) {
    return static_cast<int64_t>(number);
  }
  if (number == std::trunc(number) && number >= 0 && number < 0x1p64L) {
    return static_cast<uint64_t>(number);
  }
  return static_cast<double>(number);
}

Json optional_json(const std::optional<int64_t>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json optional_json(const std::optional<double>& number) {
  return number && std::isfinite(*number) ? Json(*number) : Json(nullptr);
}

Json microseconds_json(const std::optional<double>& seconds) {
  return optional_json(seconds ? std::optional(1e6 * *seconds) : std::nullopt);
}

Json error_json(ErrorKind kind, const std::string& where, const std::string& message) {
  return {{"error", {{"kind", snake_case(name(kind))}, {"where", where}, {"message", message}}}};
}

}  // namespace tessera::cli
