#include "cli/inputs/shape_ranges.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "api/options/argument_text.h"
#include "base/errors/check.h"

namespace tessera::cli {
namespace {

constexpr std::string_view kRangeMark = "..";

[[noreturn]] void refuse_shape(const std::string& argument, const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, "--shape '" + argument + "'", message);
}

[[noreturn]] void refuse_input(const ValueDescription& input, const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, "input '" + input.name + "'", message);
}

// The shape of an argument; all of it if it names no input.
std::string_view shape_part(std::string_view argument) {
  const size_t sign = argument.rfind('=');
  return sign == std::string_view::npos ? argument : argument.substr(sign + 1);
}

// "tokens=1x128" for "tokens=1x8..128".
std::string with_highest_sizes(const std::string& argument) {
  const std::string_view shape = shape_part(argument);
  std::string text = argument.substr(0, argument.size() - shape.size());
  for (size_t begin = 0; begin <= shape.size();) {
    const size_t end = std::min(shape.find('x', begin), shape.size());
    const std::string_view size = shape.substr(begin, end - begin);
    const size_t mark = size.rfind(kRangeMark);
    if (begin > 0) text += 'x';
    const std::string_view highest =
        mark == std::string_view::npos ? size : size.substr(mark + kRangeMark.size());
    text += highest.substr(0, highest.find('/'));  // without the step
    begin = end + 1;
  }
  return text;
}

bool can_have(const std::vector<Dimension>& declared, const std::vector<SizeRange>& ranges) {
  return std::ranges::equal(declared, ranges,
                            [](const Dimension& dimension, const SizeRange& range) {
                              const std::optional<int64_t>& size = dimension.value;
                              return !size || (range.is_single() && range.low == *size);
                            });
}

void check_highest_sizes(const ValueDescription& input, const std::vector<SizeRange>& ranges) {
  std::vector<int64_t> highest;
  for (const SizeRange& range : ranges) highest.push_back(range.high);
  try {
    tensor_bytes(input.type, highest);
  } catch (const Error& error) {
    refuse_input(input, error.where() + ": " + error.message());
  }
}

// The sizes that `shapes` gives to dimensions with names; nullopt: several. Of inputs that are
// read, because the others bind nothing.
std::map<std::string, std::optional<int64_t>> sizes_by_name(
    const NamedShapes& shapes, const std::vector<ValueDescription>& declared) {
  std::map<std::string, std::optional<int64_t>> sizes;
  for (const ValueDescription& input : declared) {
    const auto given = shapes.find(input.name);
    if (given == shapes.end() || !input.is_read || !input.shape) continue;
    const size_t rank = std::min(input.shape->size(), given->second.size());
    for (size_t axis = 0; axis < rank; ++axis) {
      const Dimension& dimension = (*input.shape)[axis];
      if (dimension.value) continue;
      const int64_t size = given->second[axis];
      const auto [known, is_new] = sizes.emplace(dimension.symbol, size);
      if (!is_new && known->second != size) known->second = std::nullopt;
    }
  }
  return sizes;
}

}  // namespace

bool has_range(const std::string& argument) {
  return shape_part(argument).find(kRangeMark) != std::string_view::npos;
}

RangedShape parse_ranged_shape(const std::string& argument) {
  const NamedArgument named = split_named_argument("--shape", argument);
  return {.argument = argument,
          .name = named.name,
          .ranges = parse_ranges("--shape '" + argument + "'", named.value)};
}

void refuse_range(const std::string& argument) {
  if (!has_range(argument)) return;
  refuse_shape(argument,
               "expected one size for each dimension, because only 'tessera bench' draws sizes "
               "from ranges; write for example --shape '" +
                   with_highest_sizes(argument) + "'");
}

ShapeDraw::ShapeDraw(const std::vector<RangedShape>& shapes,
                     const std::vector<ValueDescription>& inputs, NamedShapes fixed,
                     const NamedTensors& files, uint64_t seed)
    : fixed_(std::move(fixed)), random_(seed) {
  for (const RangedShape& shape : shapes) {
    const ValueDescription& input =
        inputs[find_value_index("--shape", "input", shape.name, inputs)];
    if (dims_.contains(input.name) || fixed_.contains(input.name)) {
      refuse_input(input, "expected one --shape, found two");
    }
    if (files.contains(input.name)) {
      refuse_input(input, "expected either a file (--input) or a range of sizes (--shape '" +
                              shape.argument + "'), found both");
    }
    add(shape, input);
  }
  check_names();
}

void ShapeDraw::add(const RangedShape& shape, const ValueDescription& input) {
  if (input.shape && !can_have(*input.shape, shape.ranges)) {
    refuse_input(input,
                 "expected " + input.text + ", found " + ranges_text(shape.ranges) + " (--shape)");
  }
  check_highest_sizes(input, shape.ranges);
  std::vector<DrawnDim>& dims = dims_[input.name];
  for (size_t axis = 0; axis < shape.ranges.size(); ++axis) {
    dims.push_back({shape.ranges[axis], input.shape ? (*input.shape)[axis].symbol : ""});
  }
}

// A size in place of a range is no mistake: a model may give one name to dimensions that differ.
void ShapeDraw::check_names() const {
  std::map<std::string, SizeRange> by_symbol;
  for (const auto& [input, dims] : dims_) {
    for (const DrawnDim& dim : dims) {
      if (dim.symbol.empty() || dim.range.is_single()) continue;
      const SizeRange first = by_symbol.emplace(dim.symbol, dim.range).first->second;
      if (first == dim.range) continue;
      throw Error(ErrorKind::InvalidArgument, "input '" + input + "'",
                  "expected " + range_text(first) + " for dimension '" + dim.symbol +
                      "', as --shape says elsewhere, because dimensions with one name get one "
                      "size; found " +
                      range_text(dim.range));
    }
  }
}

std::map<std::string, std::vector<SizeRange>> ShapeDraw::ranges() const {
  std::map<std::string, std::vector<SizeRange>> ranges;
  for (const auto& [input, dims] : dims_) {
    for (const DrawnDim& dim : dims) ranges[input].push_back(dim.range);
  }
  return ranges;
}

NamedShapes ShapeDraw::next() {
  NamedShapes shapes = fixed_;
  std::map<std::string, int64_t> by_symbol;
  for (const auto& [input, dims] : dims_) {
    std::vector<int64_t>& shape = shapes[input];
    for (const auto& [range, symbol] : dims) {
      if (range.is_single()) {
        shape.push_back(range.low);
        continue;
      }
      const auto drawn = by_symbol.find(symbol);
      if (!symbol.empty() && drawn != by_symbol.end()) {
        shape.push_back(drawn->second);
        continue;
      }
      // Not std::uniform_int_distribution, whose numbers depend on the library. The count fits: the
      // largest is 2^63.
      const uint64_t count = static_cast<uint64_t>((range.high - range.low) / range.step) + 1;
      shape.push_back(range.low + static_cast<int64_t>(random_() % count) * range.step);
      by_symbol.emplace(symbol, shape.back());
    }
  }
  return shapes;
}

void set_shapes(const NamedShapes& shapes, const std::vector<ValueDescription>& declared,
                std::vector<ValueDescription>& inputs) {
  const std::map<std::string, std::optional<int64_t>> sizes = sizes_by_name(shapes, declared);
  for (ValueDescription& input : inputs) {
    const auto own = std::ranges::find(declared, input.name, &ValueDescription::name);
    TESSERA_CHECK(own != declared.end(), "an executor has the inputs of its model");
    input.text = own->text;
    input.shape = own->shape;
    const auto given = shapes.find(input.name);
    if (given != shapes.end()) {
      input.shape.emplace();
      for (const int64_t size : given->second) {
        input.shape->push_back({.value = size, .symbol = ""});
      }
    } else if (input.shape) {
      for (Dimension& dimension : *input.shape) {
        const auto known = dimension.value ? sizes.end() : sizes.find(dimension.symbol);
        if (known == sizes.end() || !known->second) continue;
        dimension = {.value = known->second, .symbol = ""};
      }
    }
  }
}

}  // namespace tessera::cli
