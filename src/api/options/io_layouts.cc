#include "api/options/io_layouts.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/errors/likely_name.h"
#include "tessera/backend_abi.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// The default capacity is this fraction of all elements: one tenth.
constexpr int64_t kDefaultShare = 10;

constexpr std::string_view kHostDeviceName = "cpu";

std::string input_location(const IoValue& value) {
  return "input '" + value.description.name + "'";
}

std::string text_of(const IoValue& value) {
  return value.description.text + (value.form ? " in " + text(*value.form) : "");
}

std::string text_of(const SparseTensor& tensor) {
  return std::string(name(tensor.type())) + " " + dims_text(tensor.dims()) + " in " +
         std::string(name(tensor.format()));
}

std::optional<SparseFormat> format_named(std::string_view text) {
  for (const SparseFormat format : {SparseFormat::Csr, SparseFormat::RowSparse}) {
    if (text == name(format)) return format;
  }
  return std::nullopt;
}

int64_t default_capacity(SparseFormat format, const Graph& graph, const std::string& value) {
  const ValueId id = find_value(graph, value);
  // mark_sparse() reports types that cannot be sparse.
  if (!graph[id].type.is_known_tensor()) return 0;
  const int64_t most = max_stored(format, dims_from(*graph[id].type.shape));
  return most <= 0 ? 0 : (most - 1) / kDefaultShare + 1;
}

[[noreturn]] void refuse_layout(const std::string& value, std::string_view layout,
                                std::string_view format) {
  throw Error(
      ErrorKind::InvalidArgument, "layout of '" + value + "'",
      "expected 'row_major', perhaps with '@' and a device that has memory of its own, such "
      "as 'row_major@mylib', or 'csr' or 'row_sparse', perhaps with ':' and a capacity, "
      "such as 'csr:400000'; found '" +
          std::string(layout) + "'" +
          did_you_mean(format, {TESSERA_LAYOUT_DEFAULT, std::string(name(SparseFormat::Csr)),
                                std::string(name(SparseFormat::RowSparse))}));
}

SparseForm parse_form(const Graph& graph, const std::string& value, std::string_view layout) {
  const size_t colon = layout.find(':');
  const std::optional<SparseFormat> format = format_named(layout.substr(0, colon));
  int64_t capacity = 0;
  bool is_number = true;
  if (colon != std::string_view::npos) {
    const std::string_view digits = layout.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), capacity);
    is_number = error == std::errc() && end == digits.end() && capacity >= 0;
  }
  if (!format || !is_number) refuse_layout(value, layout, layout.substr(0, colon));
  if (colon == std::string_view::npos) capacity = default_capacity(*format, graph, value);
  return {*format, capacity};
}

void check_is_input_or_output(const Graph& graph, const std::string& value) {
  std::vector<std::string> names;
  for (const auto* ids : {&graph.inputs, &graph.outputs}) {
    for (const ValueId id : *ids) names.push_back(graph[id].name);
  }
  if (std::ranges::find(names, value) != names.end()) return;
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "'" : ", '") + name + "'";
  throw Error(
      ErrorKind::InvalidArgument, "layout of '" + value + "'",
      "expected the name of an input or output (" + list + ")" + did_you_mean(value, names));
}

}  // namespace

IoLayouts parse_layouts(const Graph& graph, const std::map<std::string, std::string>& layouts) {
  IoLayouts parsed;
  for (const auto& [value, layout] : layouts) {
    check_is_input_or_output(graph, value);
    const size_t at = layout.find('@');
    if (at != std::string::npos) {
      const std::string device = layout.substr(at + 1);
      if (layout.substr(0, at) != TESSERA_LAYOUT_DEFAULT || device.empty()) {
        refuse_layout(value, layout, std::string_view(layout).substr(0, at));
      }
      if (device != kHostDeviceName) parsed.devices[value] = device;
    } else if (layout != TESSERA_LAYOUT_DEFAULT) {
      parsed.forms[value] = parse_form(graph, value, layout);
    }
  }
  return parsed;
}

std::vector<std::optional<SparseForm>> io_forms(const Graph& graph,
                                                const std::vector<ValueId>& ids) {
  std::vector<std::optional<SparseForm>> forms;
  for (const ValueId id : ids) {
    forms.push_back(graph[id].is_io_sparse ? graph[id].sparse : std::nullopt);
  }
  return forms;
}

bool is_optional(const ValueDescription& value) { return value.text.starts_with("optional("); }

bool has_no_shape(const ValueDescription& value) {
  return value.type == DataType::Sequence || value.type == DataType::Map || is_optional(value);
}

namespace {

// The name of the element type that a list of tensors of this description has; "" for others.
std::string_view listed_type(std::string_view text) {
  constexpr std::string_view kBegin = "sequence(";
  const size_t begin = text.find(kBegin);
  if (begin == std::string_view::npos || text.find("map(") != std::string_view::npos) return "";
  const std::string_view rest = text.substr(begin + kBegin.size());
  return rest.substr(0, rest.find(' '));
}

// Throws unless the map has keys and values of the described types.
void check_map(const IoValue& input, const Tensor& given) {
  const std::string types = "map(" + std::string(name(given.map_keys().type())) + ", " +
                            std::string(name(given.map_values().type()));
  const std::string& expected = input.description.text;
  if (expected.find(types + " ") != std::string::npos) return;
  throw Error(ErrorKind::InvalidArgument, input_location(input),
              "expected " + expected + ", found " + types + ")");
}

Tensor feed_without_shape(const IoValue& input, const Tensor& given) {
  const ValueDescription& described = input.description;
  if (given.type() != described.type) {
    throw Error(ErrorKind::InvalidArgument, input_location(input),
                "expected " + described.text + ", found " + std::string(name(given.type())) +
                    (given.holds_tensors() ? "" : " " + dims_text(given.dims())));
  }
  if (given.is_map()) check_map(input, given);
  if (!given.is_sequence()) return given;
  const std::string_view element = listed_type(described.text);
  for (const Tensor& each : given.list()) {
    if (each.is_map()) check_map(input, each);
    if (each.holds_tensors() || element.empty() || name(each.type()) == element) continue;
    throw Error(
        ErrorKind::InvalidArgument, input_location(input),
        "expected " + described.text + ", found an element of " + std::string(name(each.type())));
  }
  return given;
}

}  // namespace

Tensor feed(const IoValue& input, const Tensor& given) {
  if (has_no_shape(input.description)) return feed_without_shape(input, given);
  const std::string found = std::string(name(given.type())) + " " + dims_text(given.dims());
  if (!input.form && found == input.description.text) return given;
  throw Error(
      ErrorKind::InvalidArgument, input_location(input),
      "expected " + text_of(input) + ", found " + found + (input.form ? ", which is dense" : ""));
}

Tensor feed(const IoValue& input, const SparseTensor& given) {
  const std::string dense = std::string(name(given.type())) + " " + dims_text(given.dims());
  const bool is_as_bound =
      input.form && input.form->format == given.format() && dense == input.description.text;
  if (!is_as_bound) {
    throw Error(ErrorKind::InvalidArgument, input_location(input),
                "expected " + text_of(input) + ", found " + text_of(given) +
                    (input.form ? "" : "; bind with layouts that say so to feed it sparsely"));
  }
  if (given.stored() <= input.form->capacity) return given.storage();
  const std::string what = given.format() == SparseFormat::Csr ? " elements" : " rows";
  throw Error(ErrorKind::InvalidArgument, input_location(input),
              "expected at most " + std::to_string(input.form->capacity) + what +
                  " to be stored (the capacity of " + text(*input.form) + "), found " +
                  std::to_string(given.stored()) + "; bind with a layout that has room for them");
}

Tensor feed(const IoValue& input, const AnyTensor& given) {
  return std::visit([&](const auto& tensor) { return feed(input, tensor); }, given);
}

const std::vector<int64_t>& dims_of(const Tensor& tensor) { return tensor.dims(); }

const std::vector<int64_t>& dims_of(const AnyTensor& tensor) {
  return std::visit([](const auto& one) -> const std::vector<int64_t>& { return one.dims(); },
                    tensor);
}

void check_kind(const IoValue& input, const Tensor& given) {
  const DataType expected = input.description.type;
  if (has_no_shape(input.description)) {
    feed(input, given);
    return;
  }
  if ((given.type() != expected && expected != DataType::Undefined) || input.form) {
    feed(input, given);
  }
}

void check_kind(const IoValue& input, const AnyTensor& given) {
  if (const auto* dense = std::get_if<Tensor>(&given)) return check_kind(input, *dense);
  const auto& sparse = std::get<SparseTensor>(given);
  const bool is_alike = input.form && input.form->format == sparse.format() &&
                        input.description.type == sparse.type();
  if (!is_alike) feed(input, sparse);
}

AnyTensor give(const IoValue& output, Tensor result) {
  if (!output.form) return result;
  std::vector<int64_t> dims;
  for (const Dimension& dimension : *output.description.shape) dims.push_back(*dimension.value);
  return SparseTensor::from_storage(output.description.type, std::move(dims), std::move(result));
}

}  // namespace tessera
