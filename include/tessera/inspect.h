// Describes models that this build cannot load, and what it lacks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/descriptions.h"
#include "tessera/error.h"
#include "tessera/tessera.h"

namespace tessera {

// Something that a model needs and this build lacks.
struct MissingPart {
  std::string kind;    // "version", "operator", "value_type" or "element_type"
  std::string name;    // "DequantizeLinear", "sequence", "float8e4m3fn"
  std::string domain;  // of an operator; "" is ONNX's own
  std::string reason;  // "DequantizeLinear of ai.onnx is not in this build"
  // Of an operator: the version of its domain that the model means, if it is known.
  std::optional<int64_t> opset = std::nullopt;
  int64_t count = 0;                     // of the nodes, values or attributes that need it
  std::vector<std::string> places = {};  // of these, the first hundred
};

struct ModelInspection {
  // Describes the loaded model or, if it cannot be loaded, the declarations of its file: nodes are
  // those of the file, of nested graphs and of functions, without types.
  ModelDescription model;
  std::vector<MissingPart> missing;  // everything because of which load() refuses the model
};

// The error that load() throws if this build lacks something that a model needs. The message lists
// everything that is missing. The kind is Unsupported, or InvalidModel if the model also has
// errors.
class MissingParts : public Error {
 public:
  MissingParts(const Error& error, ModelInspection inspection)
      : Error(error), inspection_(std::move(inspection)) {}

  const ModelInspection& inspection() const { return inspection_; }

 private:
  ModelInspection inspection_;
};

// Describes a model, also if load() throws MissingParts. Keeps no index. Otherwise throws as
// load().
ModelInspection inspect(const std::filesystem::path& file, LoadOptions options = {});
ModelInspection inspect(ModelBytes model, const LoadOptions& options = {});

}  // namespace tessera
