// Runs models one after the other in one process, for the Python fuzzers in this folder
// (runner.py), which restart the process after a crash.
//
// Reads one JSON object a line from stdin:
//   {"model": FILE, "backends": [NAME...], "threads": N, "keeps_denormals": false,
//    "runs": [{NAME: FILE.npy or FILE.pb, ...}, ...], "outputs": FOLDER}
// Loads the model, binds it to the shapes of the first run's inputs that the model has, without
// measuring, and runs it on each run's inputs. Writes one line for each model to stdout, with the
// result of each run (or of loading, for all runs), as
//   {"runs": [{"kind": "", "stage": "run", "outputs": [{"file": FILE, "type": T, "dims": [...]}]},
//             {"kind": "InvalidArgument", "stage": "run", "where": ..., "message": ...}]}
// The kind "exception" means an exception that is not a tessera::Error.
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/tensor_file.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

using nlohmann::json;
using Inputs = std::map<std::string, Tensor>;

// A run that takes longer ends before its next step.
constexpr double kMaxSeconds = 5;
// Larger outputs are not written.
constexpr int64_t kMaxOutputBytes = int64_t{1} << 24;

json error_json(const std::exception& thrown, const char* stage) {
  const auto* error = dynamic_cast<const Error*>(&thrown);
  if (error == nullptr)
    return {{"kind", "exception"}, {"stage", stage}, {"message", thrown.what()}};
  return {{"kind", std::string(name(error->kind()))},
          {"stage", stage},
          {"where", error->where()},
          {"message", error->message()}};
}

Inputs read_inputs(const json& files) {
  Inputs inputs;
  for (const auto& [name, file] : files.items()) {
    inputs[name] = read_tensor(file.get<std::string>());
  }
  return inputs;
}

Executor bind(const Model& model, const json& request, const Inputs& inputs) {
  BindOptions options;
  options.optimize = Optimize::Off;
  options.threads = request.value("threads", 1);
  options.run.keeps_denormals = request.value("keeps_denormals", false);
  options.backends = request.value("backends", std::vector<std::string>());
  for (const ValueDescription& input : model.describe().inputs) {
    const auto found = inputs.find(input.name);
    if (found != inputs.end()) options.shapes[input.name] = found->second.dims();
  }
  Executor executor = model.bind(options);
  executor.set_time_limit(kMaxSeconds);
  return executor;
}

json outputs_json(const std::vector<Tensor>& outputs, const std::filesystem::path& folder,
                  size_t run) {
  json result = json::array();
  for (size_t index = 0; index < outputs.size(); ++index) {
    const Tensor& output = outputs[index];
    json entry = {{"type", std::string(name(output.type()))}, {"dims", output.dims()}};
    if (!output.is_empty() && output.bytes() <= kMaxOutputBytes) {
      const auto file = folder / (std::to_string(run) + "_" + std::to_string(index) + ".npy");
      write_npy(file, output);
      entry["file"] = file.string();
    }
    result.push_back(entry);
  }
  return result;
}

Model load_file(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  return load(ModelBytes{.bytes = std::move(bytes), .name = "model", .folder = "/nonexistent"},
              {.log = [](const std::string&) {}, .threads = 1});
}

json answer(const json& request) {
  const json& runs = request.at("runs");
  const char* stage = "load";
  json results = json::array();
  try {
    const Model model = load_file(request.at("model"));
    std::optional<Executor> executor;
    for (size_t run = 0; run < runs.size(); ++run) {
      try {
        const Inputs inputs = read_inputs(runs[run]);
        stage = "bind";
        if (!executor) executor = bind(model, request, inputs);
        stage = "run";
        results.push_back(
            {{"kind", ""},
             {"stage", stage},
             {"outputs",
              outputs_json(executor->run(inputs), request.at("outputs").get<std::string>(), run)}});
      } catch (const std::exception& error) {
        results.push_back(error_json(error, stage));
      }
    }
  } catch (const std::exception& error) {
    results = json(runs.size(), error_json(error, stage));
  }
  return {{"runs", results}};
}

}  // namespace
}  // namespace tessera

int main() {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    const std::string text = tessera::answer(nlohmann::json::parse(line))
                                 .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    std::cout << text << '\n' << std::flush;
  }
}
