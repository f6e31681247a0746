#include "cli/run_inputs.h"

#include "cli/named_argument.h"
#include "cli/random_input.h"
#include "tessera/tensor_file.h"

namespace tessera::cli {
namespace {

std::string place_of(const ValueDescription& input) { return "input '" + input.name + "'"; }

// The input that `argument` names; `seen` has those of earlier arguments.
template <class Map>
const ValueDescription& find_new_input(const char* option, const NamedArgument& argument,
                                       const std::vector<ValueDescription>& inputs,
                                       const Map& seen) {
  const ValueDescription& input = inputs[find_value_index(option, "input", argument.name, inputs)];
  if (seen.contains(input.name)) {
    throw Error(ErrorKind::InvalidArgument, place_of(input),
                std::string("expected one ") + option + ", found two");
  }
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
  throw Error(ErrorKind::InvalidArgument, place_of(input),
              "expected " + expected + ", found " + std::string(name(tensor.type())) + " " +
                  dims_text(tensor.dims()) + " in file '" + file + "'");
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

}  // namespace

NamedShapes parse_shapes(const std::vector<std::string>& arguments,
                         const std::vector<ValueDescription>& inputs) {
  NamedShapes shapes;
  for (const std::string& text : arguments) {
    const NamedArgument argument = split_named_argument("--shape", text);
    const ValueDescription& input = find_new_input("--shape", argument, inputs, shapes);
    shapes[input.name] = parse_dims("--shape", argument.value);
  }
  return shapes;
}

NamedTensors read_inputs(const std::vector<std::string>& arguments,
                         const std::vector<ValueDescription>& inputs, const NamedShapes& shapes) {
  NamedTensors tensors;
  for (const std::string& text : arguments) {
    const NamedArgument argument = split_named_argument("--input", text);
    const ValueDescription& input = find_new_input("--input", argument, inputs, tensors);
    Tensor tensor = read_tensor(argument.value);
    if (input.is_read) check_tensor(input, tensor, argument.value, shapes);
    tensors[input.name] = std::move(tensor);
  }
  return tensors;
}

NamedShapes shapes_to_bind(const NamedShapes& shapes, const NamedTensors& tensors) {
  NamedShapes all = shapes;
  for (const auto& [name, tensor] : tensors) all.emplace(name, tensor.dims());
  return all;
}

void check_all_given(const std::vector<ValueDescription>& inputs, const NamedTensors& tensors) {
  for (const ValueDescription& input : inputs) {
    if (!input.is_read || tensors.contains(input.name)) continue;
    throw Error(ErrorKind::InvalidArgument, place_of(input),
                "expected " + input.text + ", found nothing; give it with --input '" + input.name +
                    "=FILE.npy', or --random SEED");
  }
}

void add_random(const std::vector<ValueDescription>& inputs, uint64_t seed, NamedTensors& tensors) {
  for (const ValueDescription& input : inputs) {
    if (tensors.contains(input.name)) continue;
    const std::optional<std::vector<int64_t>> dims = known_dims(input);
    if (!input.is_read && (!dims || element_bytes(input.type) == 0)) continue;
    if (!dims) {
      throw Error(ErrorKind::InvalidArgument, place_of(input),
                  "expected a known shape, found " + input.text + "; give it with --shape");
    }
    tensors[input.name] = random_tensor(input.type, *dims, seed, input.name, input.index_limit);
  }
}

}  // namespace tessera::cli
