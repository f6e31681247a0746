#include "constants.h"

namespace tessera::native {

std::optional<double> number_in(const plugin::Value& value) {
  if (!value.is_constant() || value.constant() == nullptr || !value.type().is_known() ||
      value.type().elements() != 1) {
    return std::nullopt;
  }
  switch (value.type().data_type) {
    case TESSERA_FLOAT32:
      return value.constant_as<float>()[0];
    case TESSERA_FLOAT64:
      return value.constant_as<double>()[0];
    case TESSERA_INT32:
      return value.constant_as<int32_t>()[0];
    case TESSERA_INT64:
      return static_cast<double>(value.constant_as<int64_t>()[0]);
    default:
      return std::nullopt;
  }
}

}  // namespace tessera::native
