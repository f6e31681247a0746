// Tessera's C++ interface: load a model, bind it to shapes, run it.
//
//   const tessera::Model model = tessera::load("squeezenet.onnx");
//   tessera::Executor executor = model.bind();
//   const std::vector<tessera::Tensor> outputs = executor.run({{"data_0", picture}});
//
// Everything throws tessera::Error (tessera/error.h). A Model may be used from many threads at
// once; an Executor from one at a time. Executors share the weights of their model.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/data_type.h"
#include "tessera/error.h"
#include "tessera/tensor.h"

namespace tessera {

// Receives each distinct message once. The library itself never writes to stdout.
using LogCallback = std::function<void(const std::string& message)>;

struct LoadOptions {
  // A declared shape of an inner value that contradicts the inferred one is an error, not a
  // warning.
  bool is_strict = false;
  // Every value of the model's file can be fetched: no pass removes one. Costs speed and memory.
  bool keeps_all_values = false;
  // Where warnings go; stderr if empty.
  LogCallback log = {};
};

struct BindOptions {
  // The shapes of inputs, by name. Needed for inputs whose declared shape has unknown dimensions.
  std::map<std::string, std::vector<int64_t>> shapes = {};
  // Inner values to return after the outputs, by name. Where one no longer exists because a pass
  // removed it, load with keeps_all_values.
  std::vector<std::string> fetch = {};
  // Threads to use; 0 means all cores that the process may use.
  int threads = 0;
};

// One dimension as the model declares it: a number, or the name of an unknown one.
struct Dimension {
  std::optional<int64_t> value;
  std::string symbol;  // "" where value is set
};

// An input, output or inner value of a model.
struct ValueDescription {
  std::string name;
  DataType type = DataType::Undefined;
  std::optional<std::vector<Dimension>> shape;  // nullopt: rank unknown
  bool is_read = true;                          // false: nothing reads it, so it need not be fed
  // For integer inputs that only index (Gather): the number of things to choose from.
  std::optional<int64_t> index_limit;
  std::string text;  // "float32 1x3xHx224"
};

struct NodeDescription {
  std::string name;
  std::string op;
  std::string domain;
  int version = 0;
  std::vector<ValueDescription> inputs;  // an omitted one has an empty name
  std::vector<ValueDescription> outputs;
  std::optional<int64_t> flops;  // a multiply-add is 2; nullopt while shapes are unknown
  std::optional<int64_t> bytes;  // read and written; nullopt while shapes are unknown
  std::string inference_only;    // the pass that made it right for inference only, else ""
};

// What one rewriting pass did when the model was loaded.
struct PassDescription {
  std::string name;
  int64_t nodes_before = 0;
  int64_t nodes_after = 0;
  double seconds = 0;
  std::vector<std::string> changes;  // one sentence a change; empty: nothing changed
};

struct ModelDescription {
  std::string file;
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;  // by domain; "" is ONNX's own
  std::vector<ValueDescription> inputs;   // without those that have a value in the file
  std::vector<ValueDescription> outputs;
  std::vector<ValueDescription> weights;  // constants that a node reads
  std::vector<NodeDescription> nodes;     // after rewriting, in the order in which they run
  std::vector<PassDescription> passes;
  std::vector<std::string> fetchable;  // values that the file's nodes make and no pass has removed
  int64_t weight_bytes = 0;
  std::optional<int64_t> flops;       // of all nodes
  std::optional<int64_t> peak_bytes;  // of inner values alive at once, when run in order
};

// What one node did during a run.
struct StepRecord {
  std::string node;
  std::string op;
  std::chrono::nanoseconds start{};  // since the run began
  std::chrono::nanoseconds duration{};
  int64_t flops = 0;
  int64_t bytes = 0;
};

class Executor {
 public:
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;
  ~Executor();

  // Runs on `inputs`, by name, and gives the outputs in the model's order, then the fetched values.
  // Inputs that nothing reads may be left out. Throws InvalidArgument where an input is missing,
  // unknown, or not of the type and shape that was bound (naming both).
  std::vector<Tensor> run(const std::map<std::string, Tensor>& inputs);

  // Inputs and outputs with the bound shapes; outputs are followed by the fetched values.
  const std::vector<ValueDescription>& inputs() const;
  const std::vector<ValueDescription>& outputs() const;

  int threads() const;

  // One record for each node of the newest run, in order. Recording is off until switched on.
  void record_steps(bool is_on);
  const std::vector<StepRecord>& steps() const;

 private:
  friend class Model;
  struct State;
  explicit Executor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Model {
 public:
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // Plans for the given shapes. Throws InvalidArgument (unknown name, shape that contradicts the
  // model, dimension still unknown), InvalidModel (shapes that do not fit together) or OutOfMemory
  // (more than the machine has, found before anything is allocated).
  Executor bind(const BindOptions& options = {}) const;

  ModelDescription describe() const;
  // The same with shapes bound, so that sizes and work are known.
  ModelDescription describe(const std::map<std::string, std::vector<int64_t>>& shapes) const;

 private:
  friend Model load(const std::filesystem::path&, const LoadOptions&);
  struct State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Loads an ONNX file. Throws InvalidArgument (cannot be read), InvalidModel, Unsupported (an op or
// version that this build does not know), OutOfMemory.
Model load(const std::filesystem::path& file, const LoadOptions& options = {});

// "0.1.0"
std::string version();

// Lists what can run models here, for `tessera backends`.
struct BackendDescription {
  std::string name;
  std::string version;
  std::vector<std::string> devices;
  int64_t op_count = 0;
};
std::vector<BackendDescription> backends();

}  // namespace tessera
