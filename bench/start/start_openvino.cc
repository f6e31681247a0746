// A program with OpenVINO that bench/start.py starts: the settings of harness/runtimes.py, and a
// CACHE_DIR.
//   start_openvino MODEL THREADS RUNS CACHE_DIR [NAME=1x128]...
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "openvino/openvino.hpp"
#include "start_line.h"

namespace {

ov::CompiledModel compile(ov::Core& core, int count, char** arguments) {
  const ov::AnyMap settings = {
      {"PERFORMANCE_HINT", "LATENCY"},        {"NUM_STREAMS", "1"},
      {"INFERENCE_PRECISION_HINT", "f32"},    {"DYNAMIC_QUANTIZATION_GROUP_SIZE", "0"},
      {"KV_CACHE_PRECISION", "f32"},          {"ENABLE_CPU_PINNING", "NO"},
      {"INFERENCE_NUM_THREADS", arguments[2]}};
  core.set_property(ov::cache_dir(arguments[4]));
  // Given the file's path, OpenVINO's cache identifies the model without reading it.
  if (count == 5) return core.compile_model(arguments[1], "CPU", settings);
  std::map<std::string, ov::PartialShape> shapes;
  for (const auto& [name, dims] : tessera::bench::shapes_of(arguments + 5, arguments + count)) {
    shapes[name] = std::vector<ov::Dimension>(dims.begin(), dims.end());
  }
  const std::shared_ptr<ov::Model> model = core.read_model(arguments[1]);
  model->reshape(shapes);
  return core.compile_model(model, "CPU", settings);
}

void run(int count, char** arguments) {
  ov::Core core;
  ov::CompiledModel compiled = compile(core, count, arguments);
  ov::InferRequest request = compiled.create_infer_request();
  for (const auto& input : compiled.inputs()) {
    ov::Tensor tensor(input.get_element_type(), input.get_shape());
    std::memset(tensor.data(), 0, tensor.get_byte_size());
    request.set_tensor(input, tensor);
  }
  tessera::bench::print_start_line([&] { request.infer(); }, std::atoi(arguments[3]));
}

}  // namespace

int main(int count, char** arguments) { return tessera::bench::main_of(count, arguments, 5, run); }
