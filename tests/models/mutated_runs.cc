// Runs a model once for each fault that can be put into a Conv, Gemm or MatMul kernel (its output
// times 1.1; its first two channels swapped) and writes every value of each run, so that a test can
// check whether its comparison detects the fault.
//
//   mutated_runs MODEL OUT_DIR NAME=FILE.npy ...
//
// writes OUT_DIR/<number>/mutation.json, .../values.json and the values as .npy.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/errors/log.h"
#include "compile/compile.h"
#include "engine/interpreter.h"
#include "tessera/error.h"
#include "tessera/tensor_file.h"

namespace tessera {
namespace {

enum class Mutation { Scaled, ChannelsSwapped };

Tensor scaled(const Tensor& tensor) {
  Tensor result(tensor.type(), tensor.dims());
  for (int64_t index = 0; index < tensor.elements(); ++index) {
    result.mutable_as<float>()[index] = tensor.as<float>()[index] * 1.1F;
  }
  return result;
}

// nullopt if `axis` has fewer than two channels.
std::optional<Tensor> channels_swapped(const Tensor& tensor, size_t axis) {
  if (axis >= tensor.dims().size() || tensor.dims()[axis] < 2) return std::nullopt;
  int64_t inner = 1;
  for (size_t index = axis + 1; index < tensor.dims().size(); ++index)
    inner *= tensor.dims()[index];
  const int64_t block = tensor.dims()[axis] * inner;
  Tensor result(tensor.type(), tensor.dims());
  const auto source = tensor.as<float>();
  const auto target = result.mutable_as<float>();
  for (int64_t index = 0; index < tensor.elements(); ++index) {
    const int64_t channel = index % block / inner;
    const int64_t offset = channel == 0 ? inner : channel == 1 ? -inner : 0;
    target[index] = source[index + offset];
  }
  return result;
}

std::optional<Tensor> mutated(const StepEvent& event, Mutation mutation) {
  const Tensor& output = event.outputs[0];
  if (mutation == Mutation::Scaled) return scaled(output);
  const bool has_channels_first = event.node.op == "Conv";
  return channels_swapped(output, has_channels_first ? 1 : output.dims().size() - 1);
}

// Runs with `mutation` in `node`; nullopt if the node's output cannot be mutated in this way.
std::optional<std::vector<Tensor>> run_mutated(Interpreter& interpreter,
                                               const std::vector<Tensor>& inputs,
                                               const std::string& node, Mutation mutation) {
  bool is_done = false;
  std::vector<Tensor> results = interpreter.run(inputs, [&](const StepEvent& event) {
    std::optional<Tensor> wrong;
    if (event.node.name == node) wrong = mutated(event, mutation);
    if (wrong) {
      event.outputs[0] = *std::move(wrong);
      is_done = true;
    }
    return true;
  });
  if (!is_done) return std::nullopt;
  return results;
}

void write_values(const std::filesystem::path& folder, const Graph& graph,
                  const std::vector<Tensor>& results, const nlohmann::json& mutation) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "mutation.json") << mutation;
  nlohmann::json index = nlohmann::json::array();
  for (size_t kept = 0; kept < graph.kept.size(); ++kept) {
    const std::string file = "value_" + std::to_string(kept) + ".npy";
    write_npy(folder / file, results[graph.outputs.size() + kept]);
    index.push_back({{"name", graph[graph.kept[kept]].name}, {"file", file}});
  }
  std::ofstream(folder / "values.json") << index;
}

int run(const std::vector<std::string>& arguments) {
  const ops::Registry registry = ops::make_registry();
  const Log log;
  ThreadPool pool(1);
  std::map<std::string, Tensor> given;
  std::map<std::string, std::vector<int64_t>> shapes;
  for (size_t index = 2; index < arguments.size(); ++index) {
    const size_t equals = arguments[index].rfind('=');
    const std::string name = arguments[index].substr(0, equals);
    given[name] = read_tensor(arguments[index].substr(equals + 1));
    shapes[name] = given[name].dims();
  }
  const LoadedModel model =
      load_model(arguments[0], {.keeps_all_values = true}, registry, pool, log);
  Interpreter interpreter(bind_graph(model, shapes, model.made_values, registry, pool, log).graph,
                          registry, 1);
  const Graph& graph = interpreter.graph();
  std::vector<Tensor> inputs;
  for (const ValueId id : graph.inputs) inputs.push_back(given[graph[id].name]);

  int count = 0;
  for (const Node& node : graph.nodes) {
    if (node.op != "Conv" && node.op != "Gemm" && node.op != "MatMul") continue;
    for (const auto& [mutation, kind] :
         {std::pair(Mutation::Scaled, "scaled"),
          std::pair(Mutation::ChannelsSwapped, "channels swapped")}) {
      const auto results = run_mutated(interpreter, inputs, node.name, mutation);
      if (!results) continue;
      write_values(std::filesystem::path(arguments[1]) / std::to_string(count++), graph, *results,
                   {{"node", node.name}, {"op", node.op}, {"kind", kind}});
    }
  }
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: mutated_runs MODEL OUT_DIR NAME=FILE.npy ...\n";
    return 2;
  }
  try {
    return tessera::run({argv + 1, argv + argc});
  } catch (const tessera::Error& error) {
    std::cerr << "mutated_runs: " << error.what() << "\n";
    return 2;
  }
}
