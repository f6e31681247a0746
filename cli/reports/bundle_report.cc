#include "cli/reports/bundle_report.h"

#include <algorithm>

#include "cli/output/quantities.h"
#include "cli/reports/cache_report.h"

namespace tessera::cli {
namespace {

constexpr size_t kBundleLabelColumns = 12;

// "processor 'AMD EPYC', instruction set 'avx2'", without ingredients of the model.
std::string machine_text(const BundleDescription& bundle) {
  std::string text;
  for (const CacheIngredient& ingredient : bundle.ingredients) {
    if (ingredient.name == "model") continue;
    text += (text.empty() ? "" : ", ") + ingredient.name + " " + ingredient.value;
  }
  return text;
}

std::string usability_text(const BundleDescription& bundle) {
  if (!bundle.unused.empty()) return "not on this machine: " + bundle.unused;
  if (bundle.origin == "found by somebody else") {
    return "plans are checked first; packed weights and kernels are not used, because somebody "
           "else "
           "made them";
  }
  return "yes, by this user on this machine";
}

}  // namespace

std::string bundle_text(const BundleDescription& bundle, const TextStyle& style) {
  const auto line = [&](const std::string& label, const std::string& text) {
    return labelled(label, text, kBundleLabelColumns, style);
  };
  std::string text = line(
      "bundle", bundle.file.string() + " of " + bundle.model + ", " + bytes_text(bundle.bytes));
  text += line("written by", "tessera " + bundle.version);
  text += line("made for", bundle.ingredients.empty() ? "unknown" : machine_text(bundle));
  text += line("usable", usability_text(bundle));
  TextTable parts({{"part"}, {"name", Align::Left, true}, {"size", Align::Right}});
  for (const BundlePart& part : bundle.parts) {
    parts.add_row({part.kind, part.name, bytes_text(part.bytes)});
  }
  text += "\n" + parts.text(style);
  return text + "\n" + plans_text(bundle.sections, style);
}

Json bundle_json(const BundleDescription& bundle) {
  Json parts = Json::array();
  for (const BundlePart& part : bundle.parts) {
    parts.push_back({{"part", part.kind}, {"file", part.name}, {"size_bytes", part.bytes}});
  }
  return {{"file", bundle.file.string()},
          {"model", bundle.model},
          {"size_bytes", bundle.bytes},
          {"version", bundle.version},
          {"origin", bundle.origin},
          {"reason", bundle.unused},
          {"parts", std::move(parts)},
          {"ingredients", ingredients_json(bundle.ingredients)},
          {"sections", sections_json(bundle.sections)}};
}

}  // namespace tessera::cli
