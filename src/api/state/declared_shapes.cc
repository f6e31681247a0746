#include "api/state/declared_shapes.h"

#include <utility>

#include "api/options/shape_ranges.h"
#include "infer/specialise.h"
#include "tessera/error.h"

namespace tessera {

DeclaredShapes::DeclaredShapes(const Graph& loaded,
                               std::map<std::string, std::vector<SizeRange>> ranges)
    : ranges_(std::move(ranges)) {
  const std::vector<int> uses = use_counts(loaded);
  for (const ValueId id : loaded.inputs) {
    is_read_.push_back(uses[static_cast<size_t>(id.index)] > 0);
    are_fixed_ = are_fixed_ && (!is_read_.back() || loaded[id].type.is_known_tensor());
  }
  for (const auto* ids : {&loaded.inputs, &loaded.outputs}) {
    for (const ValueId id : *ids) {
      if (loaded[id].type.shape) shapes_.emplace(loaded[id].name, *loaded[id].type.shape);
    }
  }
}

bool DeclaredShapes::is_open(const std::string& input, size_t axis) const {
  const auto shape = shapes_.find(input);
  return shape == shapes_.end() || axis >= shape->second.size() || !shape->second[axis].is_known();
}

bool DeclaredShapes::permit(const std::string& name, const Dims& dims) const {
  const auto shape = shapes_.find(name);
  return shape == shapes_.end() || permits(shape->second, dims);
}

void DeclaredShapes::check_range(const ValueDescription& input, const Dims& dims) const {
  const auto ranges = ranges_.find(input.name);
  if (ranges == ranges_.end() || contain(ranges->second, dims)) return;
  const std::string type(name(input.type));
  throw Error(ErrorKind::InvalidArgument, "input '" + input.name + "'",
              "expected " + type + " " + ranges_text(ranges->second) +
                  ", the ranges that bind() was given, found " + type + " " + dims_text(dims));
}

void DeclaredShapes::check(const ValueDescription& input, const Dims& dims) const {
  check_range(input, dims);
  if (permit(input.name, dims)) return;
  const std::string type(name(input.type));
  throw Error(ErrorKind::InvalidArgument, "input '" + input.name + "'",
              "expected " + type + " " + text(shapes_.at(input.name)) + ", found " + type + " " +
                  dims_text(dims));
}

}  // namespace tessera
