// Describes a model that this build cannot load, from its file alone, with everything that is
// missing: a refusal names all of it, not only what import finds first.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/registry.h"
#include "tessera/error.h"
#include "tessera/inspect.h"

namespace tessera {

// What the file declares, and what is missing; functions count once. Reads no weights. Both throw
// InvalidArgument if the file cannot be read, and InvalidModel if it is no ONNX model.
ModelInspection survey_onnx(const std::filesystem::path& file, const ops::Registry& registry);
ModelInspection survey_onnx_bytes(std::string_view bytes, const ops::Registry& registry);

// `error`, which refused the model at `location`, with all that is missing in place of what was
// found first; if something else was wrong, besides. `error` itself if `missing` is empty.
Error with_missing(const Error& error, const std::string& location,
                   const std::vector<MissingPart>& missing);

// Throws MissingParts with what `survey` finds; or `error`, if it finds nothing or fails.
[[noreturn]] void throw_missing(const Error& error, const std::string& location,
                                const std::function<ModelInspection()>& survey);

}  // namespace tessera
