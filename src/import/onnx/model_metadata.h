// Reads the metadata, inputs and outputs of an ONNX file, as its author declared them. import.h
// reads the model itself, in which inputs have the types that are inferred.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/descriptions.h"

namespace tessera {

struct DeclaredValue {
  std::string name;
  // In ONNX's notation: "tensor(float)", "seq(tensor(int64))"; "" if the file gives none.
  std::string type;
  // Dimensions without a value and a name have an empty symbol. nullopt: the rank is not declared.
  std::optional<std::vector<Dimension>> shape;
  bool has_initializer = false;  // the file has a value for this input
};

struct ModelMetadata {
  int64_t ir_version = 0;
  std::string producer_name;
  std::string graph_name;
  std::string domain;
  std::string description;
  std::string graph_description;
  std::optional<int64_t> version;
  std::map<std::string, std::string> custom_metadata;
  std::vector<DeclaredValue> inputs;  // also those with an initializer
  std::vector<DeclaredValue> outputs;
};

// Reads no weights, and does not check that the model can run. Both throw InvalidArgument if the
// file cannot be read, and InvalidModel if it is not an ONNX model.
ModelMetadata read_metadata(const std::filesystem::path& file);
ModelMetadata read_metadata_bytes(std::string_view bytes);

}  // namespace tessera
