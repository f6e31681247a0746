// Describes a model that this build cannot load, from its file alone, with everything that is
// missing: the error names all missing parts, not only the first one.
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

// Returns the file's declarations and the missing parts; functions count once. Reads no weights.
// Both throw InvalidArgument if the file cannot be read, and InvalidModel if it is no ONNX model.
ModelInspection survey_onnx(const std::filesystem::path& file, const ops::Registry& registry);
ModelInspection survey_onnx_bytes(std::string_view bytes, const ops::Registry& registry);

// Returns `error`, which refused the model at `location`, with all missing parts in place of the
// first one; after the message if something else was wrong. Returns `error` if `missing` is empty.
Error with_missing(const Error& error, const std::string& location,
                   const std::vector<MissingPart>& missing);

// Throws MissingParts with the parts that `survey` finds; or `error`, if it finds none or fails.
[[noreturn]] void throw_missing(const Error& error, const std::string& location,
                                const std::function<ModelInspection()>& survey);

}  // namespace tessera
