#include "python/metadata.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors/likely_name.h"
#include "cache/bundle_file.h"
#include "import/onnx/model_metadata.h"
#include "python/interpreter_lock.h"
#include "python/text.h"
#include "store/bundle.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace tessera::python {
namespace {

nb::object shape_of(const DeclaredValue& value) {
  if (!value.shape) return nb::none();
  nb::list dims;
  for (const Dimension& dim : *value.shape) {
    if (dim.value) {
      dims.append(*dim.value);
    } else if (dim.symbol.empty()) {
      dims.append(nb::none());
    } else {
      dims.append(decoded(dim.symbol));
    }
  }
  return dims;
}

nb::list declared_values(const std::vector<DeclaredValue>& values) {
  nb::list list;
  for (const DeclaredValue& value : values) {
    list.append(
        nb::make_tuple(decoded(value.name), value.type, shape_of(value), value.has_initializer));
  }
  return list;
}

nb::dict to_dict(const ModelMetadata& metadata) {
  nb::dict custom;
  for (const auto& [key, value] : metadata.custom_metadata) custom[decoded(key)] = decoded(value);
  nb::dict fields;
  fields["ir_version"] = metadata.ir_version;
  fields["producer_name"] = decoded(metadata.producer_name);
  fields["graph_name"] = decoded(metadata.graph_name);
  fields["domain"] = decoded(metadata.domain);
  fields["description"] = decoded(metadata.description);
  fields["graph_description"] = decoded(metadata.graph_description);
  fields["version"] = metadata.version;
  fields["custom_metadata_map"] = custom;
  fields["inputs"] = declared_values(metadata.inputs);
  fields["outputs"] = declared_values(metadata.outputs);
  return fields;
}

nb::dict read_bytes(const nb::bytes& bytes) {
  ModelMetadata metadata;
  {
    const Unlocked unlocked;
    std::string copy = cache::is_bundle({bytes.c_str(), bytes.size()})
                           ? std::string(bytes.c_str(), bytes.size())
                           : "";
    const std::shared_ptr<const Bundle> bundle = Bundle::over(copy, "the given bytes");
    metadata = read_metadata_bytes(bundle ? bundle->model_bytes()
                                          : std::string_view(bytes.c_str(), bytes.size()));
  }
  return to_dict(metadata);
}

nb::dict read_file(const std::filesystem::path& file) {
  ModelMetadata metadata;
  {
    const Unlocked unlocked;
    const std::shared_ptr<const Bundle> bundle = Bundle::open(file);
    metadata = bundle ? read_metadata_bytes(bundle->model_bytes()) : read_metadata(file);
  }
  return to_dict(metadata);
}

}  // namespace

void bind_metadata(nb::module_& module) {
  constexpr const char* kText =
      "The metadata in a model's file. Inputs and outputs are tuples of name, type in ONNX's "
      "notation, shape or None, and whether the file has a value for it.";
  // The first overload that fits is used. Bytes come first, because they also convert to a path.
  module.def("read_metadata", &read_bytes, "model"_a, kText);
  module.def("read_metadata", &read_file, "model"_a, kText);
  module.def("did_you_mean", &did_you_mean, "name"_a, "known"_a,
             R"("; did you mean 'x'?" for the end of a message; "" if no known name is near.)");
}

}  // namespace tessera::python
