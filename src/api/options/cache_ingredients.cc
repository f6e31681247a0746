#include "api/options/cache_ingredients.h"

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>

#include "api/options/bind_options.h"
#include "api/options/option_table.h"
#include "base/errors/check.h"
#include "base/machine/processor.h"
#include "cache/cache_file.h"
#include "price/cost_sections.h"

namespace tessera {
namespace {

// Longer values are shown as their digests.
constexpr size_t kMaxLetters = 200;

std::string shortened(const std::string& value) {
  return value.size() <= kMaxLetters ? value : "digest " + cache::digest_text(value);
}

template <class Items, class ToText>
std::string joined(const Items& items, const ToText& to_text) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + to_text(item);
  return shortened(text);
}

// The default text of an option's value in a key.
struct PlainText {
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
  std::string operator()(const std::string& value) const { return value; }
  template <class Number>
    requires std::is_arithmetic_v<Number>
  std::string operator()(Number value) const {
    return std::to_string(value);
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  std::string operator()(Enum value) const {
    return std::string(choices[static_cast<size_t>(value)]);
  }
  std::string operator()(const std::map<std::string, std::string>& values) const {
    return joined(values, [](const auto& entry) { return entry.first + "=" + entry.second; });
  }
  std::string operator()(const std::vector<std::string>& values) const {
    return joined(values, [](const std::string& value) { return value; });
  }
  std::string operator()(const std::vector<Pin>& pins) const {
    return joined(pins, [](const Pin& pin) {
      return pin.nodes + "=" + pin.backend + (pin.algorithm.empty() ? "" : ":" + pin.algorithm);
    });
  }
  std::string operator()(const std::vector<Exclusion>& exclusions) const {
    return joined(exclusions, [](const Exclusion& exclusion) {
      return exclusion.backend + (exclusion.op.empty() ? "" : ":" + exclusion.op);
    });
  }
  std::string operator()(const std::vector<StatePair>& pairs) const {
    return joined(pairs, [](const StatePair& pair) { return pair.input + "=" + pair.output; });
  }

  std::span<const std::string_view> choices;
};

std::string plain_text(const BindOption& option, const BindOptions& options) {
  return std::visit(
      [&]<class T>(const Field<T>& field) -> std::string {
        const PlainText write{option.choices};
        if constexpr (requires(const T& value) { write(value); }) {
          return write(field.get(options));
        } else {
          TESSERA_CHECK(false, "an ingredient of such a type has a function of its own");
          return "";
        }
      },
      option.field.typed);
}

}  // namespace

std::vector<cache::Ingredient> machine_ingredients() {
  return {{"tessera", tuning::first_two_numbers(version())},
          {"cache format", std::to_string(cache::kFormatVersion)},
          {"processor", processor_model()},
          {"instruction set", instruction_set_name()}};
}

// The ingredients of a machine are the first ones of those of a model.
std::string explain_other_machine(const std::vector<cache::Ingredient>& ingredients) {
  const std::vector<cache::Ingredient> here = machine_ingredients();
  const size_t count = std::min(here.size(), ingredients.size());
  return cache::explain_difference(std::span(ingredients).first(count), here);
}

std::vector<cache::Ingredient> model_ingredients(const ModelStructure& structure) {
  std::vector<cache::Ingredient> all = machine_ingredients();
  all.push_back({"model", structure.digest});
  return all;
}

std::vector<cache::Ingredient> bind_ingredients(const Graph& loaded,
                                                const ModelStructure& structure,
                                                const BindOptions& options,
                                                const std::vector<std::string>& backends,
                                                int threads) {
  const IngredientSource source{loaded, structure, options, backends, threads};
  std::vector<const BindOption*> parts;
  for (const BindOption& option : bind_options()) {
    if (option.ingredient.position > 0) parts.push_back(&option);
  }
  std::sort(parts.begin(), parts.end(), [](const BindOption* left, const BindOption* right) {
    return left->ingredient.position < right->ingredient.position;
  });
  std::vector<cache::Ingredient> all;
  for (const BindOption* option : parts) {
    const OptionIngredient& ingredient = option->ingredient;
    all.push_back({std::string(ingredient.name), ingredient.write == nullptr
                                                     ? plain_text(*option, options)
                                                     : ingredient.write(source)});
  }
  return all;
}

std::string inputs_text(const IngredientSource& source) {
  const std::vector<int> uses = use_counts(source.loaded);
  return joined(source.loaded.inputs, [&](ValueId input) {
    const Value& value = source.loaded[input];
    const auto given = source.options.shapes.find(value.name);
    const bool is_read = uses[static_cast<size_t>(input.index)] > 0;
    if (!is_read || given == source.options.shapes.end() || !value.type.is_tensor()) {
      return text(value.type);
    }
    std::string shape;
    for (const int64_t size : given->second)
      shape += (shape.empty() ? "" : "x") + std::to_string(size);
    return std::string(name(value.type.element)) + " " + (shape.empty() ? "scalar" : shape);
  });
}

std::string fetch_text(const IngredientSource& source) {
  return joined(source.options.fetch, [&](const std::string& fetched) {
    const ValueId value = find_value(source.loaded, fetched);
    return value.is_none() ? fetched : source.structure.names[static_cast<size_t>(value.index)];
  });
}

std::string threads_text(const IngredientSource& source) { return std::to_string(source.threads); }

std::string backends_text(const IngredientSource& source) {
  return source.backends.empty() ? "all" : PlainText{}(source.backends);
}

std::string devices_text(const IngredientSource& source) {
  const std::vector<std::string>& devices = source.options.run.devices;
  if (devices.empty()) return "cpu";
  return devices == std::vector<std::string>{"cpu"} ? "cpu only" : PlainText{}(devices);
}

std::string denormals_text(const IngredientSource& source) {
  return source.options.run.keeps_denormals ? "kept" : "flushed";
}

std::string optimize_for_text(const IngredientSource& source) {
  const int64_t runs = runs_per_build(source.options.tune.optimize_for);
  return runs == 0 ? "latency" : std::to_string(runs) + "-runs";
}

void add_core_revision(std::vector<tuning::PricedLibrary>& libraries) {
  for (tuning::PricedLibrary& library : libraries) {
    library.stable.push_back({tuning::kCoreRevisionName, kernel_revision()});
  }
}

}  // namespace tessera
