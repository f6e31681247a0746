#include "python/descriptions.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "api/describe/description_fields.h"
#include "python/text.h"

namespace nb = nanobind;

namespace tessera::python {
namespace {

using Ingredients = std::vector<CacheIngredient>;

template <class T>
nb::object value_of(const T& value) {
  if constexpr (kIsDescribed<T>) {
    return to_python(value);
  } else if constexpr (std::is_enum_v<T>) {
    return nb::cast(std::string_view(name(value)));
  } else if constexpr (std::is_same_v<T, std::chrono::nanoseconds>) {
    return nb::cast(value.count());
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return decoded(value.string());
  } else if constexpr (std::is_same_v<T, std::string>) {
    return decoded(value);
  } else if constexpr (std::is_same_v<T, Dimension>) {
    return value.value ? nb::cast(*value.value) : decoded(value.symbol);
  } else if constexpr (std::is_same_v<T, Ingredients>) {
    nb::dict ingredients;
    for (const CacheIngredient& each : value) ingredients[each.name.c_str()] = each.value;
    return ingredients;
  } else if constexpr (requires { typename T::mapped_type; }) {
    nb::dict entries;
    for (const auto& [key, each] : value) entries[value_of(key)] = value_of(each);
    return entries;
  } else if constexpr (kIsOptional<T>) {
    return value ? value_of(*value) : nb::none();
  } else if constexpr (kIsVector<T>) {
    nb::list list;
    for (const auto& each : value) list.append(value_of(each));
    if constexpr (std::is_same_v<T, std::vector<Dimension>>) return nb::tuple(list);
    return list;
  } else {
    return nb::cast(value);
  }
}

}  // namespace

template <class Description>
nb::object to_python(const Description& description) {
  static_assert(is_listed<Description>(Descriptions()), "descriptions.py lacks the class");
  nb::dict fields;
  for_each_field<Description>(
      [&](const auto& field) { fields[field.name] = value_of(description.*field.member); });
  const nb::module_ module = nb::module_::import_("tessera.descriptions");
  return module.attr(kFields<Description>.name)(**fields);
}

template nb::object to_python(const BackendDescription& backend);
template nb::object to_python(const CacheReport& report);
template nb::object to_python(const CompileDescription& compiled);
template nb::object to_python(const HeldMemoryDescription& memory);
template nb::object to_python(const ModelDescription& model);
template nb::object to_python(const ModelInspection& inspection);
template nb::object to_python(const PlanDescription& plan);
template nb::object to_python(const ShapesDescription& shapes);
template nb::object to_python(const StageRecord& stage);
template nb::object to_python(const StepRecord& step);
template nb::object to_python(const TuneProgress& progress);
template nb::object to_python(const ValueDescription& value);

}  // namespace tessera::python
