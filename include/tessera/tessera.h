// Tessera's C++ interface: load a model, bind it to shapes, run it.
//
//   const tessera::Model model = tessera::load("squeezenet.onnx");
//   tessera::Executor executor = model.bind();
//   const std::vector<tessera::Tensor> outputs = executor.run({{"data_0", picture}});
//
// All functions report errors by throwing tessera::Error (tessera/error.h). Several threads may use
// a Model concurrently, but only one thread at a time may use an Executor. Executors share the
// weights of their model.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/bind_options.h"
#include "tessera/bundle.h"
#include "tessera/cache.h"
#include "tessera/descriptions.h"
#include "tessera/error.h"
#include "tessera/sparse_tensor.h"
#include "tessera/tensor.h"

namespace tessera {

// Receives each distinct message once. The library itself never writes to stdout.
using LogCallback = std::function<void(const std::string& message)>;

class Model;
struct LoadOptions;
struct ModelBytes;

// Whether a library can run models, and if not, why.
enum class BackendStatus {
  Usable,
  NotBuilt,        // Tessera was built without its plug-in, or the plug-in's file is missing
  LibraryMissing,  // the library itself is not installed, or too old
  Refused,         // the plug-in exists, but cannot be used
};

// "usable", "not built", "library missing", "refused".
const char* name(BackendStatus status);

// Describes a library that may run models, for `tessera backends`.
struct BackendDescription {
  std::string name;
  std::string version;               // "" if the plug-in has not been opened
  std::vector<std::string> devices;  // "cpu"
  std::vector<std::string> layouts;  // layouts of its own
  std::vector<std::string> aliases;
  std::filesystem::path file;  // "" if it is built in or missing
  bool is_usable = false;
  BackendStatus status = BackendStatus::Refused;
  std::string reason;  // why it is not usable
  // A hint what to install, or the command that builds it; "" if nothing helps.
  std::string remedy;
  int64_t op_count = 0;  // for the reference backend: number of ops with a kernel
};

// The backends that models may run on: those that are built in, those in the plug-in folder next to
// the library, those that TESSERA_BACKEND_PATH names (files or folders, separated by colons), and
// those that are added here. Copies refer to the same set. Thread-safe. A plug-in is opened when it
// is first needed; a plug-in that cannot be opened is not an error, but an entry of describe(). All
// models on the same set share what BindOptions::optimize measured.
class Backends {
 public:
  Backends();

  // Adds a plug-in, or a folder of plug-ins, to be opened when needed. A file that is called like
  // one of Tessera's own plug-ins ("backend_<name>.so") replaces it for later binds. Throws
  // InvalidArgument if there is no such file or folder.
  void add_path(const std::filesystem::path& path);
  // Opens a plug-in now. Throws Unsupported with the reason if it cannot be used.
  void load_backend(const std::filesystem::path& library);

  // Tensors in memory of a device, by its name (BackendDescription::devices), for inputs and
  // outputs whose layout RunOptions::layouts gives as "row_major@<device>". All throw
  // InvalidArgument if there is no such device, or if it has no memory of its own (listing those
  // that have); Unsupported if its backend cannot be used; OutOfMemory and DeviceFailed, naming the
  // device. The elements of a new tensor are undefined. to_device() waits until they are copied;
  // Tensor::to_host() copies them back.
  Tensor new_tensor(DataType type, std::vector<int64_t> dims, const std::string& device) const;
  Tensor to_device(const Tensor& tensor, const std::string& device) const;
  // Memory that the caller got from the device's own API, which `owner` keeps alive: `handle` is
  // the handle of the memory in that API (DeviceStorage::handle()).
  Tensor tensor_over(DataType type, std::vector<int64_t> dims, const std::string& device,
                     std::shared_ptr<void> owner, void* handle, int64_t offset_bytes = 0) const;

  // The name of the device that DLPack names `called`; "" if no such device can exchange memory.
  // Opens all known backends.
  std::string device_named(const DlpackDevice& called) const;

  // Opens all known backends to find out whether they can be used, and describes them.
  std::vector<BackendDescription> describe() const;

  // Describes the entries that binds of models on these backends keep in memory for later binds.
  std::vector<HeldCacheDescription> held_caches() const;

 private:
  friend class Model;
  friend class Executor;
  friend Model load(const std::filesystem::path&, const LoadOptions&);
  friend Model load(ModelBytes, const LoadOptions&);
  struct State;
  std::shared_ptr<State> state_;
};

// A model in memory.
struct ModelBytes {
  std::string bytes;  // of an ONNX file or a bundle
  // Its name in errors and in ModelDescription::file.
  std::string name = "the given bytes";
  // The folder of its external data; "": the working folder.
  std::filesystem::path folder = {};
};

struct LoadOptions {
  // Whether a declared shape of an inner value that contradicts the inferred shape is an error
  // instead of a warning.
  bool is_strict = false;
  // Every value of the model's file can be fetched, because no pass removes one. This costs speed
  // and memory.
  bool keeps_all_values = false;
  // Receives warnings; if empty, they go to stderr.
  LogCallback log = {};
  // Receives information that is not a warning; if empty, it is dropped. Before this process
  // measures for the first time, if that takes more than a second: about how long it takes, where
  // the plan is kept, and how to switch it off.
  LogCallback information_log = {};
  Backends backends = {};
  // Threads for loading (to compute constants); 0 means all cores.
  int threads = 0;
  // Keep an index of the model (the loaded and rewritten graph) and its packed weights in the
  // user's folder as soon as a bind with optimize has found a plan; and load the model from there
  // as long as its files are unchanged. Not set: true unless TESSERA_OPTIMIZE=0 is in the
  // environment.
  std::optional<bool> keeps_index = {};
  // Keep and use the index only if the system granted a read lease on every file of the model
  // (fcntl(2), F_SETLEASE) while it was read, which guarantees that nobody had the file open for
  // writing. Only the owner of a file gets a lease, and not on every file system. Not set: the
  // index is not kept if a writer is noticed, but the system cannot report every writer.
  bool strict_stamps = false;
  // Copy weights from external files into memory instead of mapping these files. This costs as much
  // memory as there are weights, and the time to read them. A mapped file must not be written or
  // truncated as long as the model or one of its executors exists: bind() throws DeviceFailed if it
  // finds such a change, but a change while bind() or a run reads the file changes values, or the
  // system ends the process (SIGBUS). It is safe to replace a file by renaming another one.
  bool copies_weights = false;
  // Inputs for which the model's file has a value (an initializer), which is ignored: they are fed
  // in each run like other inputs. Otherwise such a value is a constant of the model. load() throws
  // InvalidArgument if the file has no value for one of them. No index is kept or used.
  std::set<std::string> free_inputs = {};
};

class Executor {
 public:
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;
  ~Executor();

  // Runs on `inputs`, by name. Returns the outputs in the model's order, then the fetched values.
  // Inputs that nothing reads may be left out. Throws InvalidArgument if an input is missing,
  // unknown, or not of the bound type (naming both types).
  //
  // If the model leaves shapes of inputs open, and inputs have other shapes than in the previous
  // run, the executor switches to a plan for these shapes. That takes microseconds if it has such a
  // plan; otherwise it plans as bind() does, but without measuring. Candidates that were chosen
  // before are chosen again if they are offered for the new shapes; the others are chosen by the
  // known prices, scaled by the work, or by a plan from a cache. All plans share one arena, the
  // weights, and the kernels that are not built for a dimension that differs. Afterwards inputs(),
  // outputs(), plan() and steps() describe the newest run, and references that they returned before
  // are invalid. Throws as Model::bind() does if a shape contradicts the model; then the executor
  // is unchanged. Throws Unsupported in a forked process if a thread was in a run at the fork.
  //
  // If bind() did not know all shapes, the first run binds the model to the shapes of its inputs,
  // with the options of bind(), and throws as bind() does; then nothing has changed. cancel() ends
  // its measuring, too.
  std::vector<Tensor> run(const std::map<std::string, Tensor>& inputs);

  // Same as run(), but allows sparse RunOptions::layouts: inputs and outputs in these layouts are
  // SparseTensors, all others are Tensors. Also throws InvalidArgument if an input stores more than
  // was bound, or if an output does not fit the capacity of its layout. run() cannot return sparse
  // outputs.
  std::vector<AnyTensor> run_any(const std::map<std::string, AnyTensor>& inputs);

  // Bind an input, or an output or fetched value, to memory of the caller, which all later runs
  // read or write directly. `memory` refers to it (a Tensor with an owner, or from Tensor::over)
  // and keeps it alive. The memory may begin at any multiple of the element size; if a kernel needs
  // a larger alignment, the values are copied. A bound input need not be passed to run(); a tensor
  // that is passed to run() replaces it for that run.
  //
  // Memory of another shape than the current one is used in runs with that shape. The shapes of a
  // run are those of all inputs that are passed or bound; the run throws InvalidArgument if an
  // output is bound to memory of another shape than these inputs lead to.
  //
  // Throws InvalidArgument if the name is unknown; if the type or layout is not the bound one; if
  // the shape is not the bound one and no other is possible; and for outputs that are sparse or
  // whose size is known only in the run.
  void bind_input(const std::string& name, const AnyTensor& memory);
  void bind_output(const std::string& name, Tensor memory);
  // Removes all bindings of inputs and outputs.
  void clear_bindings();

  // A run in which all inputs that are read and all outputs are bound. It allocates nothing, except
  // in the first run after binding, and inside libraries. Throws InvalidArgument if an input or
  // output is not bound. Like run(), it throws InvalidArgument if the bound memory of an output
  // overlaps that of another output. It may overlap that of inputs: results are as if all inputs
  // had been copied before the run.
  // Otherwise, a run never writes to inputs.
  void run_bound();

  // Cancels the current run, if there is one, before its next step: the run throws Cancelled, and
  // the contents of outputs are undefined. The executor can run again. May be called from any
  // thread, and from a signal handler.
  void cancel();
  // Cancels every later run that takes longer than this many seconds, including planning for new
  // shapes; 0: no limit. Plans that were finished are kept. Throws InvalidArgument if `seconds` is
  // negative.
  void set_time_limit(double seconds);

  // "", or why later runs are not possible: a device that the current plan uses was lost, or was
  // opened before this process was forked. Bind the model again, to run on the remaining devices.
  // After any other error of a run, the executor can run again.
  std::string explain_unusable() const;

  // Waits for the faster plan of CacheOptions::swap, which the next run then uses. Does nothing if
  // there will be no such plan.
  void wait_for_swap();

  // Measures the dispatch time of a step, which is its time without the kernel: the time of all
  // steps with an empty function in place of each kernel, divided by their number; 0 if there are
  // no steps. Takes some milliseconds.
  double measure_dispatch_ns();

  // Inputs and outputs with the shapes of the newest run, or with the bound shapes before the first
  // run. The fetched values follow the outputs.
  const std::vector<ValueDescription>& inputs() const;
  const std::vector<ValueDescription>& outputs() const;

  int threads() const;

  // False before the first run if bind() did not know all shapes. There is no plan then: inputs()
  // and outputs() are what the model declares, and what describes or stores a plan throws
  // InvalidArgument.
  bool has_shapes() const { return state_ != nullptr; }

  // The plan for the same shapes.
  const PlanDescription& plan() const;
  // Counts of kernels that backends of the plan have compiled; without those that compile none.
  std::vector<CompileDescription> compiled() const;
  // The text of the kernel of step `step` of plan(), for people who want to see what was compiled;
  // nullopt if the kernel was not compiled here, or has no text of this form. Throws
  // InvalidArgument if there is no such step.
  std::optional<std::string> kernel_text(size_t step, KernelForm form) const;
  // The sets of input shapes for which the executor has plans.
  ShapesDescription shapes() const;
  // All costs of this graph's candidates that bind() measured, read from a file or knew, as JSON
  // (docs/formats/costs.md); "" if there are none.
  const std::string& costs() const;
  // Describes the memory that the executor keeps now. Must not be called during a run.
  HeldMemoryDescription memory() const;

  // The stages of bind(), in order.
  const std::vector<StageRecord>& stages() const;

  // Saves the results of bind(). `type` selects them: "all"; "plan"; or a backend's name or alias,
  // for its prices, verdicts and compiled kernels. In an existing file of the same model, only this
  // part is replaced. With `include_packs` it also saves the packed weights, which only the same
  // user with the same key can use, on a machine with the same processor. Throws InvalidArgument
  // for an unknown type, for an existing file that Tessera did not write, if nothing of this type
  // exists, and if the executor was bound without optimize; Unsupported for a backend that this
  // machine does not have; DeviceFailed if the file cannot be written.
  void save_cache(const std::filesystem::path& file, const std::string& type = "all",
                  bool include_packs = false) const;
  // Plans again for the shapes that were passed to bind(), with the contents of the file, and
  // measures what is missing. Must not be called during a run. Bindings of inputs and outputs are
  // lost. Throws as save_cache() does, InvalidArgument if the file is missing or does not fit
  // (saying what differs), and Corrupt; then nothing has changed.
  void load_cache(const std::filesystem::path& file, const std::string& type = "all");
  // The report of the current plan, if it was bound with optimize.
  CacheReport cache_report() const;

  // Recording is off by default. While it is on, steps() has a record for each step of the newest
  // run, in order.
  void record_steps(bool is_on);
  const std::vector<StepRecord>& steps() const;

 private:
  friend class Model;
  struct State;
  struct Deferred;
  explicit Executor(std::unique_ptr<State> state);
  explicit Executor(std::unique_ptr<Deferred> deferred);
  State& state() const;
  template <class AnyOrTensor>
  void bind_first(const std::map<std::string, AnyOrTensor>& given);

  std::unique_ptr<State> state_;        // null before the first run if there were no shapes
  std::unique_ptr<Deferred> deferred_;  // what that run needs; null if there were shapes
};

class Model {
 public:
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // Plans for the given shapes and ranges. If dimensions that inputs need are still unknown,
  // nothing is planned before the first run (Executor::has_shapes()), which is then a bind, too.
  // Throws InvalidArgument (unknown name, shape that contradicts the model), InvalidModel (shapes
  // that do not match each other), OutOfMemory (the model needs more than the machine has, which is
  // checked before anything is allocated) or DeviceFailed (a file of the model has changed since
  // load(), and must be read again).
  Executor bind(const BindOptions& options = {}) const;

  // Estimates the duration and the gain of a bind with optimize. Measures and writes nothing.
  // Throws as bind() does.
  TuningQuote quote_tuning(const BindOptions& options = {}) const;

  // Compares all candidates of the backends for these shapes with the reference, on the tuning
  // inputs. Throws as bind() does.
  ModelVerification verify(const BindOptions& options = {}) const;

  // Returns the graph that bind() plans for `options`, rewritten and with its weights, as the bytes
  // of an ONNX file. `notes` are added to the metadata_props of its nodes, by the name of the node;
  // notes for unknown names are ignored. Throws as bind() does, and Unsupported if the graph cannot
  // be expressed as an ONNX file.
  std::string to_onnx(
      const BindOptions& options,
      const std::map<std::string, std::map<std::string, std::string>>& notes = {}) const;

  // Saves the results of the newest bind() with optimize; see Executor::save_cache(). Throws
  // InvalidArgument if there was no such bind().
  void save_cache(const std::filesystem::path& file, const std::string& type = "all",
                  bool include_packs = false) const;
  // Loads a cache file for later calls of bind(), which use the parts of it that fit; the contents
  // of several files add up. Throws as Executor::load_cache() does. Only bind() can find that
  // contents do not fit its shapes and options, and then warns in the log.
  void load_cache(const std::filesystem::path& file, const std::string& type = "all");
  // The report of the newest bind() with optimize; empty before.
  CacheReport cache_report() const;
  // Reports what a bind with optimize would find in caches. It does not bind or measure, and does
  // not wait for other processes.
  CacheReport find_cache(const BindOptions& options = {}) const;

  // Writes one file, a bundle, with this model and everything that a process needs to run it at
  // once: the weights, also those in files beside the model, and for each of `binds` the plan, the
  // packed weights and the compiled kernels. Each of `binds` is bound first, and measured if its
  // options say so; without `optimize`, the bundle has the plan that was chosen without measuring.
  // load() accepts the file in place of the model. Plans are used on machines of the same kind;
  // packs and kernels only by processes that have the key of this user's folder
  // (user_cache_folder()). Throws as bind() does; InvalidArgument if `file` cannot be written, if
  // it exists and is no bundle, and if this model is a bundle itself; DeviceFailed if writing
  // fails, or if a file of the model has changed. Then `file` is unchanged.
  void save_bundle(const std::filesystem::path& file,
                   const std::vector<BindOptions>& binds = {BindOptions()}) const;

  ModelDescription describe() const;
  // The stages of load(), in order.
  const std::vector<StageRecord>& stages() const;
  // Describes the model with these shapes bound, so that sizes and work are known.
  ModelDescription describe(const std::map<std::string, std::vector<int64_t>>& shapes) const;

 private:
  friend Model load(const std::filesystem::path&, const LoadOptions&);
  friend Model load(ModelBytes, const LoadOptions&);
  friend class Executor;
  struct State;
  explicit Model(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// Loads an ONNX file, or a bundle (Model::save_bundle()), which is recognised by its first bytes.
// Throws InvalidArgument (the file cannot be read), InvalidModel, MissingParts (tessera/inspect.h:
// operators, types or versions that this build lacks, all of them; of kind Unsupported, or
// InvalidModel),
// OutOfMemory, or Corrupt for a damaged bundle. A bundle is mapped:
// like external files, it must not be written or truncated as long as the model or one of its
// executors exists.
Model load(const std::filesystem::path& file, const LoadOptions& options = {});

// Loads a model from memory. The Model keeps the bytes, because bind() may read weights again.
// Plans and prices are cached as for a file, but no index is kept (LoadOptions::keeps_index).
Model load(ModelBytes model, const LoadOptions& options = {});

// "0.1.0"
std::string version();

}  // namespace tessera
