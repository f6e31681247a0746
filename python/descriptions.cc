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

#include "api/description_fields.h"
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

// The type of the result of value_of(), as Python writes it.
template <class T>
std::string annotation() {
  if constexpr (kIsDescribed<T>) {
    return kFields<T>.name;
  } else if constexpr (std::is_same_v<T, bool>) {
    return "bool";
  } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, std::chrono::nanoseconds>) {
    return "int";
  } else if constexpr (std::is_same_v<T, double>) {
    return "float";
  } else if constexpr (std::is_same_v<T, std::vector<Dimension>>) {
    return "tuple[int | str, ...]";
  } else if constexpr (std::is_same_v<T, Ingredients>) {
    return "dict[str, str]";
  } else if constexpr (kIsOptional<T>) {
    return annotation<typename T::value_type>() + " | None";
  } else if constexpr (kIsVector<T>) {
    return "list[" + annotation<typename T::value_type>() + "]";
  } else if constexpr (requires { typename T::mapped_type; }) {
    return "dict[str, " + annotation<typename T::mapped_type>() + "]";
  } else {
    return "str";
  }
}

// Adds the fields of a description to `classes`, and those of the descriptions inside it.
template <class T>
void add_fields(nb::dict& classes) {
  if constexpr (kIsDescribed<T>) {
    nb::dict fields;
    for_each_field<T>([&]<class Field>(const Field& field) {
      using Type = typename Field::Type;
      fields[field.name] = annotation<Type>();
      add_fields<Type>(classes);
    });
    classes[kFields<T>.name] = fields;
  } else if constexpr (kIsOptional<T> || kIsVector<T>) {
    add_fields<typename T::value_type>(classes);
  }
}

}  // namespace

template <class Description>
nb::object to_python(const Description& description) {
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

nb::dict description_fields() {
  nb::dict classes;
  add_fields<BackendDescription>(classes);
  add_fields<CacheReport>(classes);
  add_fields<CompileDescription>(classes);
  add_fields<HeldMemoryDescription>(classes);
  add_fields<ModelInspection>(classes);
  add_fields<PlanDescription>(classes);
  add_fields<ShapesDescription>(classes);
  add_fields<StageRecord>(classes);
  add_fields<StepRecord>(classes);
  add_fields<TuneProgress>(classes);
  return classes;
}

}  // namespace tessera::python
