#include "tessera/inspect.h"

#include <utility>

namespace tessera {
namespace {

template <class Source>
ModelInspection inspect_source(Source source, const LoadOptions& options) {
  try {
    return {load(std::move(source), options).describe(), {}};
  } catch (const MissingParts& refusal) {
    return refusal.inspection();
  }
}

}  // namespace

ModelInspection inspect(const std::filesystem::path& file, LoadOptions options) {
  options.keeps_index = false;
  return inspect_source(file, options);
}

ModelInspection inspect(ModelBytes model, const LoadOptions& options) {
  return inspect_source(std::move(model), options);
}

}  // namespace tessera
