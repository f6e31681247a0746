#include "cli/inputs/run_inputs.h"

#include <cstring>

#include "api/options/argument_text.h"
#include "cli/inputs/random_input.h"
#include "cli/inputs/shape_ranges.h"
#include "tessera/tensor_file.h"

namespace tessera::cli {
namespace {

constexpr std::string_view kEmptyList = "[]";  // as a value of --input

std::string location_of(const ValueDescription& input) { return "input '" + input.name + "'"; }

bool is_list(const ValueDescription& input) { return input.type == DataType::Sequence; }

bool is_optional(const ValueDescription& input) { return input.text.starts_with("optional("); }

// How a user gives the input, for an error.
std::string advice_for(const ValueDescription& input, const std::string& otherwise) {
  const std::string argument = "give it with --input '" + input.name + "=FILE.npy'";
  if (!is_list(input)) return argument + ", or " + otherwise;
  return argument + ", once for each of its tensors, or '" + input.name + "=" +
         std::string(kEmptyList) + "' for an empty list";
}

[[noreturn]] void refuse_second(const char* option, const ValueDescription& input) {
  throw Error(ErrorKind::InvalidArgument, location_of(input),
              std::string("expected one ") + option + ", found two");
}

// The input that `argument` names. `seen` has the inputs of earlier arguments.
template <class Map>
const ValueDescription& find_new_input(const char* option, const NamedArgument& argument,
                                       const std::vector<ValueDescription>& inputs,
                                       const Map& seen) {
  const ValueDescription& input = inputs[find_value_index(option, "input", argument.name, inputs)];
  if (seen.contains(input.name)) refuse_second(option, input);
  return input;
}

bool is_possible(const std::optional<std::vector<Dimension>>& declared,
                 const std::vector<int64_t>& dims) {
  if (!declared) return true;
  if (declared->size() != dims.size()) return false;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const std::optional<int64_t>& value = (*declared)[axis].value;
    if (value && *value != dims[axis]) return false;
  }
  return true;
}

void check_tensor(const ValueDescription& input, const Tensor& tensor, const std::string& file,
                  const NamedShapes& shapes) {
  const bool is_right_type = input.type == DataType::Undefined || input.type == tensor.type();
  const auto asked = shapes.find(input.name);
  const bool is_asked = asked == shapes.end() || asked->second == tensor.dims();
  if (is_right_type && is_asked && is_possible(input.shape, tensor.dims())) return;
  const std::string expected =
      is_asked ? input.text
               : std::string(name(input.type)) + " " + dims_text(asked->second) + " (--shape)";
  throw Error(ErrorKind::InvalidArgument, location_of(input),
              "expected " + expected + ", found " + std::string(name(tensor.type())) + " " +
                  dims_text(tensor.dims()) + " in file '" + file + "'");
}

// Reads what the --input arguments of one input name: several are the tensors of a list.
Tensor read_input(const std::vector<std::string>& files, const ValueDescription& input,
                  const NamedShapes& shapes) {
  const bool is_alone = files.size() == 1;
  if (is_list(input)) {
    std::vector<Tensor> elements;
    if (is_alone && files.front() == kEmptyList) return Tensor::sequence({});
    for (const std::string& file : files) elements.push_back(read_tensor(file));
    return Tensor::sequence(std::move(elements));
  }
  if (!is_alone) refuse_second("--input", input);
  Tensor tensor = read_tensor(files.front(), input.type);
  if (input.is_read && !is_optional(input)) check_tensor(input, tensor, files.front(), shapes);
  return tensor;
}

std::optional<std::vector<int64_t>> known_dims(const ValueDescription& input) {
  if (!input.shape) return std::nullopt;
  std::vector<int64_t> dims;
  for (const Dimension& dimension : *input.shape) {
    if (!dimension.value) return std::nullopt;
    dims.push_back(*dimension.value);
  }
  return dims;
}

// The sparse format that the executor accepts for the input; nullopt: dense.
std::optional<SparseFormat> sparse_format_of(const ValueDescription& input) {
  for (const SparseFormat format : {SparseFormat::Csr, SparseFormat::RowSparse}) {
    if (input.layout.starts_with(std::string(name(format)) + ":")) return format;
  }
  return std::nullopt;
}

int64_t capacity_of(const ValueDescription& input) {
  return std::stoll(input.layout.substr(input.layout.find(':') + 1));
}

// Keeps `count` evenly spread elements (or rows) and sets the others to zero.
void keep_some(SparseFormat format, int64_t count, Tensor& tensor) {
  const int64_t most = max_stored(format, tensor.dims());
  if (most == 0) return;
  const int64_t bytes = tensor.bytes() / most;
  auto* location = static_cast<char*>(tensor.mutable_data());
  double share = 0;
  for (int64_t index = 0; index < most; ++index, location += bytes) {
    share += static_cast<double>(count) / static_cast<double>(most);
    if (share >= 1) {
      share -= 1;
    } else {
      std::memset(location, 0, static_cast<size_t>(bytes));
    }
  }
}

}  // namespace

NamedShapes parse_shapes(const std::vector<std::string>& arguments,
                         const std::vector<ValueDescription>& inputs) {
  NamedShapes shapes;
  for (const std::string& text : arguments) {
    const NamedArgument argument = split_named_argument("--shape", text);
    const ValueDescription& input = find_new_input("--shape", argument, inputs, shapes);
    refuse_range(text);
    shapes[input.name] = parse_dims("--shape", argument.value);
  }
  return shapes;
}

std::vector<std::vector<std::string>> shape_sets(const std::vector<std::string>& arguments) {
  std::map<std::string, std::vector<std::string>> by_name;
  size_t count = 1;
  for (const std::string& argument : arguments) {
    std::vector<std::string>& shapes = by_name[split_named_argument("--shape", argument).name];
    shapes.push_back(argument);
    count = std::max(count, shapes.size());
  }
  std::vector<std::vector<std::string>> sets(count);
  for (const auto& [name, shapes] : by_name) {
    if (shapes.size() != 1 && shapes.size() != count) {
      throw Error(ErrorKind::InvalidArgument, "--shape '" + name + "'",
                  "expected 1 shape, for all sets of shapes, or " + std::to_string(count) +
                      ", one for each; found " + std::to_string(shapes.size()));
    }
    for (size_t set = 0; set < count; ++set) {
      sets[set].push_back(shapes[shapes.size() == 1 ? 0 : set]);
    }
  }
  return sets;
}

NamedTensors read_inputs(const std::vector<std::string>& arguments,
                         const std::vector<ValueDescription>& inputs, const NamedShapes& shapes) {
  std::map<std::string, std::vector<std::string>> files;
  for (const std::string& text : arguments) {
    const NamedArgument argument = split_named_argument("--input", text);
    files[inputs[find_value_index("--input", "input", argument.name, inputs)].name].push_back(
        argument.value);
  }
  NamedTensors tensors;
  for (const ValueDescription& input : inputs) {
    const auto found = files.find(input.name);
    if (found != files.end()) tensors[input.name] = read_input(found->second, input, shapes);
  }
  return tensors;
}

NamedShapes shapes_to_bind(const NamedShapes& shapes, const NamedTensors& tensors) {
  NamedShapes all = shapes;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.holds_tensors()) all.emplace(name, tensor.dims());
  }
  return all;
}

void check_all_given(const std::vector<ValueDescription>& inputs, const NamedTensors& tensors) {
  for (const ValueDescription& input : inputs) {
    if (!input.is_read || is_optional(input) || tensors.contains(input.name)) continue;
    throw Error(
        ErrorKind::InvalidArgument, location_of(input),
        "expected " + input.text + ", found nothing; " + advice_for(input, "--random SEED"));
  }
}

NamedFeeds feeds_of(const std::vector<ValueDescription>& inputs, const NamedTensors& tensors,
                    const Backends& backends) {
  NamedFeeds feeds(tensors.begin(), tensors.end());
  for (const ValueDescription& input : inputs) {
    const std::optional<SparseFormat> format = sparse_format_of(input);
    const auto found = tensors.find(input.name);
    if (found == tensors.end()) continue;
    const size_t device = input.layout.find('@');
    if (format) feeds[input.name] = SparseTensor::from_dense(*format, found->second);
    if (device != std::string::npos) {
      feeds[input.name] = backends.to_device(found->second, input.layout.substr(device + 1));
    }
  }
  return feeds;
}

std::vector<Tensor> dense_of(std::vector<AnyTensor> tensors) {
  std::vector<Tensor> dense;
  for (AnyTensor& tensor : tensors) {
    const auto* sparse = std::get_if<SparseTensor>(&tensor);
    dense.push_back(sparse != nullptr ? sparse->to_dense() : std::get<Tensor>(tensor).to_host());
  }
  return dense;
}

void add_random(const std::vector<ValueDescription>& inputs, uint64_t seed, NamedTensors& tensors) {
  for (const ValueDescription& input : inputs) {
    if (tensors.contains(input.name) || is_optional(input)) continue;
    const std::optional<std::vector<int64_t>> dims = known_dims(input);
    if (!input.is_read && (!dims || element_bytes(input.type) == 0)) continue;
    if (!dims) {
      throw Error(ErrorKind::InvalidArgument, location_of(input),
                  "expected a known shape, found " + input.text + "; " +
                      advice_for(input, "its shape with --shape"));
    }
    Tensor tensor = random_tensor(input.type, *dims, seed, input.name, input.index_limit);
    if (const std::optional<SparseFormat> format = sparse_format_of(input)) {
      keep_some(*format, capacity_of(input) / 2, tensor);
    }
    tensors[input.name] = std::move(tensor);
  }
}

}  // namespace tessera::cli
