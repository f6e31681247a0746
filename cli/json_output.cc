#include "cli/json_output.h"

#include <cmath>

namespace tessera::cli {

std::string json_text(const Json& json) {
  return json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

Json to_json(const ValueDescription& value) {
  Json json = {{"name", value.name}, {"type", name(value.type)}, {"shape", nullptr}};
  if (!value.shape) return json;
  json["shape"] = Json::array();
  for (const Dimension& dimension : *value.shape) {
    json["shape"].push_back(dimension.value ? Json(*dimension.value) : Json(dimension.symbol));
  }
  return json;
}

Json to_json(const std::vector<ValueDescription>& values) {
  Json json = Json::array();
  for (const ValueDescription& value : values) json.push_back(to_json(value));
  return json;
}

Json to_json(const std::string& tensor_name, const Tensor& tensor) {
  return {{"name", tensor_name}, {"type", name(tensor.type())}, {"shape", tensor.dims()}};
}

Json number_json(WideNumber number) {
  if (!std::isfinite(number)) return number_text(number, 1);
  // Whole numbers of 64-bit tensors would lose digits as doubles.
  if (number == std::trunc(number) && number >= -0x1p63L && number < 0x1p63L) {
    return static_cast<int64_t>(number);
  }
  if (number == std::trunc(number) && number >= 0 && number < 0x1p64L) {
    return static_cast<uint64_t>(number);
  }
  return static_cast<double>(number);
}

}  // namespace tessera::cli
