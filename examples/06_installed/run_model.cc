// Runs a model on made-up inputs and prints the beginning of each output: run_model_cpp MODEL
#include <tessera/tessera.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

// A tensor of 0, 0.01, 0.02, ... if it has floats, otherwise of zeros. Unknown dimensions become 1.
tessera::Tensor make_input(const tessera::ValueDescription& input) {
  std::vector<int64_t> dims;
  for (const tessera::Dimension& dimension :
       input.shape.value_or(std::vector<tessera::Dimension>()))
    dims.push_back(dimension.value.value_or(1));
  tessera::Tensor tensor(input.type, dims);
  std::fill_n(static_cast<char*>(tensor.mutable_data()), tensor.bytes(), char{0});
  if (input.type == tessera::DataType::Float32) {
    float next = 0;
    for (float& element : tensor.mutable_as<float>()) {
      element = next;
      next = next < 1 ? next + 0.01F : 0;
    }
  }
  return tensor;
}

void print(const std::string& name, const tessera::Tensor& tensor) {
  std::cout << name << ' ' << tessera::name(tensor.type()) << ' '
            << tessera::dims_text(tensor.dims());
  if (tensor.type() == tessera::DataType::Float32) {
    for (int64_t index = 0; index < std::min<int64_t>(3, tensor.elements()); ++index)
      std::cout << ' ' << tensor.as<float>()[static_cast<size_t>(index)];
  }
  std::cout << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: run_model_cpp MODEL\n";
    return 2;
  }
  try {
    const tessera::Model model = tessera::load(argv[1]);
    std::map<std::string, tessera::Tensor> inputs;
    tessera::BindOptions options;
    options.threads = 1;
    for (const tessera::ValueDescription& input : model.describe().inputs) {
      const tessera::Tensor tensor = make_input(input);
      options.shapes[input.name] = tensor.dims();
      inputs[input.name] = tensor;
    }
    tessera::Executor executor = model.bind(options);
    const std::vector<tessera::Tensor> outputs = executor.run(inputs);
    for (size_t index = 0; index < outputs.size(); ++index)
      print(executor.outputs()[index].name, outputs[index]);
  } catch (const tessera::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
