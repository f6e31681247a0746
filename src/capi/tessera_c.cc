// The functions of tessera/tessera_c.h, which call those of tessera/tessera.h.
#include "tessera/tessera_c.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capi/boundary.h"
#include "capi/option_text.h"
#include "capi/tensors.h"
#include "tessera/tessera.h"

using tessera::capi::DescribedValue;
using tessera::capi::guarded;
using tessera::capi::needed;
using tessera::capi::read_struct;
using tessera::capi::refuse_argument;
using tessera::capi::write_struct;

// The names are those of the C header.
// NOLINTBEGIN(readability-identifier-naming)
struct tessera_model {
  tessera::Model model;

  // Made when it is first asked for: the description of a large model takes time.
  struct Interface {
    std::vector<DescribedValue> inputs;
    std::vector<DescribedValue> outputs;
  };
  const Interface& interface() const {
    std::call_once(is_described, [this] {
      const tessera::ModelDescription description = model.describe();
      described = {tessera::capi::describe(description.inputs),
                   tessera::capi::describe(description.outputs)};
    });
    return described;
  }
  mutable std::once_flag is_described = {};
  mutable Interface described = {};
};

struct tessera_bind_options {
  tessera::BindOptions options;
};

struct tessera_executor {
  tessera::Executor executor;
  std::vector<tessera::Tensor> results = {};
  bool has_results = false;
  std::map<size_t, tessera::capi::ShownTensor> shown = {};  // the results that the caller asked for
  // Bindings to memory of the caller.
  std::map<std::string, tessera::Tensor> bound_inputs = {};
  std::set<std::string> bound_outputs = {};
  // Descriptions of the values of the newest run; empty until the caller asks for them.
  std::vector<DescribedValue> inputs = {};
  std::vector<DescribedValue> outputs = {};

  void forget_bindings() {
    bound_inputs.clear();
    bound_outputs.clear();
  }
  // Forgets the results that a new run makes invalid.
  void forget() {
    shown.clear();
    results.clear();
    has_results = false;
    inputs.clear();
    outputs.clear();
  }
};
// NOLINTEND(readability-identifier-naming)

namespace {

constexpr const char* kAModel = "a model";
constexpr const char* kAnExecutor = "an executor";
constexpr const char* kOptions = "bind options";
constexpr const char* kAFile = "the name of a file";
constexpr const char* kAPlace = "the address of a pointer for the result";

void describe_one(const std::vector<DescribedValue>& values, size_t index, const char* kind,
                  tessera_value_description* description) {
  if (index >= values.size()) {
    refuse_argument("index", "expected less than " + std::to_string(values.size()) +
                                 ", the number of " + kind + "s, found " + std::to_string(index));
  }
  write_struct(description, values[index].view(), "description");
}

void add_backend_paths(const char* paths, tessera::Backends& backends) {
  if (paths == nullptr) return;
  const std::string all = paths;
  size_t begin = 0;
  while (begin <= all.size()) {
    const size_t end = std::min(all.find(':', begin), all.size());
    if (end > begin) backends.add_path(all.substr(begin, end - begin));
    begin = end + 1;
  }
}

struct GivenLoadOptions {
  tessera::LoadOptions options;
  std::filesystem::path folder;  // of external data of a model in memory
};

GivenLoadOptions read_load_options(const tessera_load_options* given) {
  GivenLoadOptions read;
  if (given == nullptr) return read;
  const tessera_load_options known = read_struct(given, "options");
  if (known.threads < 0) {
    refuse_argument("options.threads",
                    "expected 0 (all cores) or more, found " + std::to_string(known.threads));
  }
  read.options.threads = known.threads;
  read.options.is_strict = known.is_strict != 0;
  read.options.keeps_all_values = known.keeps_all_values != 0;
  read.options.copies_weights = known.copies_weights != 0;
  add_backend_paths(known.backend_paths, read.options.backends);
  if (known.folder != nullptr) read.folder = known.folder;
  if (known.log != nullptr) {
    read.options.log = [log = known.log, user = known.log_user](const std::string& message) {
      log(user, message.c_str());
    };
  }
  return read;
}

std::string type_or_all(const char* type) { return type == nullptr ? "all" : type; }

bool overlaps(const tessera::Tensor& left, const tessera::Tensor& right) {
  const auto* const left_begin = static_cast<const char*>(left.data());
  const auto* const right_begin = static_cast<const char*>(right.data());
  return left_begin < right_begin + right.bytes() && right_begin < left_begin + left.bytes();
}

bool overlaps_one(const std::map<std::string, tessera::Tensor>& inputs,
                  const tessera::Tensor& result) {
  return std::ranges::any_of(inputs,
                             [&](const auto& input) { return overlaps(input.second, result); });
}

// An output may be an input, whose memory the caller may free before it reads the output. Bound
// outputs are where the caller wants them.
void copy_views_of_inputs(const tessera_executor& executor,
                          const std::map<std::string, tessera::Tensor>& given,
                          std::vector<tessera::Tensor>& results) {
  for (size_t index = 0; index < results.size(); ++index) {
    tessera::Tensor& result = results[index];
    result = result.to_host();
    if (result.is_empty() || tessera::element_bytes(result.type()) == 0) continue;
    if (executor.bound_outputs.contains(executor.executor.outputs()[index].name)) continue;
    if (!overlaps_one(given, result) && !overlaps_one(executor.bound_inputs, result)) continue;
    result = result.copied();
  }
}

}  // namespace

uint32_t tessera_c_version(void) { return TESSERA_C_VERSION; }

const char* tessera_version(void) { return TESSERA_VERSION; }

const char* tessera_kind_name(int32_t kind) {
  if (kind == TESSERA_OK) return "OK";
  if (kind < TESSERA_INVALID_MODEL || kind > TESSERA_CACHE_MISS) return "unknown";
  return tessera::name(static_cast<tessera::ErrorKind>(kind - 1)).data();
}

int32_t tessera_load(const char* file, const tessera_load_options* options, tessera_model** model,
                     tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(file, "file", kAFile);
    needed(model, "model", kAPlace);
    *model = new tessera_model{
        tessera::load(std::filesystem::path(file), read_load_options(options).options)};
  });
}

int32_t tessera_load_bytes(const void* bytes, size_t size, const tessera_load_options* options,
                           tessera_model** model, tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(bytes, "bytes", "the bytes of an ONNX file");
    needed(model, "model", kAPlace);
    GivenLoadOptions read = read_load_options(options);
    tessera::ModelBytes source{.bytes = std::string(static_cast<const char*>(bytes), size),
                               .folder = std::move(read.folder)};
    *model = new tessera_model{tessera::load(std::move(source), read.options)};
  });
}

void tessera_model_destroy(tessera_model* model) { delete model; }

size_t tessera_model_input_count(const tessera_model* model) {
  size_t count = 0;
  guarded(nullptr, [&] { count = model == nullptr ? 0 : model->interface().inputs.size(); });
  return count;
}

size_t tessera_model_output_count(const tessera_model* model) {
  size_t count = 0;
  guarded(nullptr, [&] { count = model == nullptr ? 0 : model->interface().outputs.size(); });
  return count;
}

int32_t tessera_model_input(const tessera_model* model, size_t index,
                            tessera_value_description* description, tessera_failure* failure) {
  return guarded(failure, [&] {
    describe_one(needed(model, "model", kAModel)->interface().inputs, index, "input", description);
  });
}

int32_t tessera_model_output(const tessera_model* model, size_t index,
                             tessera_value_description* description, tessera_failure* failure) {
  return guarded(failure, [&] {
    describe_one(needed(model, "model", kAModel)->interface().outputs, index, "output",
                 description);
  });
}

int32_t tessera_bind_options_create(tessera_bind_options** options, tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(options, "options", kAPlace);
    *options = new tessera_bind_options();
  });
}

void tessera_bind_options_destroy(tessera_bind_options* options) { delete options; }

int32_t tessera_bind_options_set(tessera_bind_options* options, const char* name, const char* text,
                                 tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(options, "options", kOptions);
    needed(name, "name", "the name of an option");
    needed(text, "text", "the value of the option as text");
    tessera::capi::set_option(options->options, name, text);
  });
}

int32_t tessera_bind_options_add_tuning_input(tessera_bind_options* options,
                                              const tessera_tensor* tensor,
                                              tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(options, "options", kOptions);
    const auto given = tessera::capi::read_tensor(tensor, "input", "tensor");
    options->options.tune.tuning_inputs.insert_or_assign(given.name, given.tensor.copied());
  });
}

size_t tessera_bind_option_count(void) {
  size_t count = 0;
  guarded(nullptr, [&] { count = tessera::capi::text_options().size(); });
  return count;
}

const char* tessera_bind_option_name(size_t index) {
  const char* name = nullptr;
  guarded(nullptr, [&] {
    const auto options = tessera::capi::text_options();
    if (index < options.size()) name = options[index]->name.data();
  });
  return name;
}

const char* tessera_bind_option_text(size_t index) {
  const char* text = nullptr;
  guarded(nullptr, [&] {
    const auto options = tessera::capi::text_options();
    if (index < options.size()) text = options[index]->help.data();
  });
  return text;
}

int32_t tessera_bind(const tessera_model* model, const tessera_bind_options* options,
                     tessera_executor** executor, tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(model, "model", kAModel);
    needed(executor, "executor", kAPlace);
    *executor = new tessera_executor{
        model->model.bind(options == nullptr ? tessera::BindOptions() : options->options)};
  });
}

void tessera_executor_destroy(tessera_executor* executor) { delete executor; }

size_t tessera_executor_input_count(const tessera_executor* executor) {
  return executor == nullptr ? 0 : executor->executor.inputs().size();
}

size_t tessera_executor_output_count(const tessera_executor* executor) {
  return executor == nullptr ? 0 : executor->executor.outputs().size();
}

int32_t tessera_executor_input(tessera_executor* executor, size_t index,
                               tessera_value_description* description, tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(executor, "executor", kAnExecutor);
    if (executor->inputs.empty()) {
      executor->inputs = tessera::capi::describe(executor->executor.inputs());
    }
    describe_one(executor->inputs, index, "input", description);
  });
}

int32_t tessera_executor_output(tessera_executor* executor, size_t index,
                                tessera_value_description* description, tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(executor, "executor", kAnExecutor);
    if (executor->outputs.empty()) {
      executor->outputs = tessera::capi::describe(executor->executor.outputs());
    }
    describe_one(executor->outputs, index, "output", description);
  });
}

int32_t tessera_executor_run(tessera_executor* executor, const tessera_tensor* inputs, size_t count,
                             tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(executor, "executor", kAnExecutor);
    const std::map<std::string, tessera::Tensor> given = tessera::capi::read_tensors(inputs, count);
    executor->forget();
    std::vector<tessera::Tensor> results = executor->executor.run(given);
    copy_views_of_inputs(*executor, given, results);
    executor->results = std::move(results);
    executor->has_results = true;
  });
}

int32_t tessera_executor_result(tessera_executor* executor, size_t index, tessera_tensor* result,
                                tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(executor, "executor", kAnExecutor);
    if (!executor->has_results) {
      throw tessera::Error(tessera::ErrorKind::InvalidArgument, "result " + std::to_string(index),
                           "expected that tessera_executor_run() succeeded before, found no run, "
                           "or one that failed");
    }
    if (index >= executor->results.size()) {
      refuse_argument("index", "expected less than " + std::to_string(executor->results.size()) +
                                   ", the number of outputs, found " + std::to_string(index));
    }
    const tessera::ValueDescription& described = executor->executor.outputs().at(index);
    const auto [shown, is_new] =
        executor->shown.try_emplace(index, executor->results[index], described.name);
    write_struct(result, shown->second.view(), "result");
  });
}

int32_t tessera_executor_bind_input(tessera_executor* executor, const tessera_tensor* input,
                                    tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(executor, "executor", kAnExecutor);
    const auto given = tessera::capi::read_tensor(input, "input", "input");
    executor->executor.bind_input(given.name, given.tensor);
    executor->bound_inputs.insert_or_assign(given.name, given.tensor);
  });
}

int32_t tessera_executor_bind_output(tessera_executor* executor, const tessera_tensor* output,
                                     tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(executor, "executor", kAnExecutor);
    const auto given = tessera::capi::read_tensor(output, "output", "output");
    executor->executor.bind_output(given.name, given.tensor);
    executor->bound_outputs.insert(given.name);
  });
}

int32_t tessera_executor_clear_bindings(tessera_executor* executor, tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(executor, "executor", kAnExecutor)->executor.clear_bindings();
    executor->forget_bindings();
  });
}

int32_t tessera_executor_run_bound(tessera_executor* executor, tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(executor, "executor", kAnExecutor)->forget();
    executor->executor.run_bound();
  });
}

void tessera_executor_cancel(tessera_executor* executor) {
  if (executor != nullptr) executor->executor.cancel();
}

int32_t tessera_executor_set_time_limit(tessera_executor* executor, double seconds,
                                        tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(executor, "executor", kAnExecutor)->executor.set_time_limit(seconds);
  });
}

int32_t tessera_executor_wait_for_swap(tessera_executor* executor, tessera_failure* failure) {
  return guarded(failure,
                 [&] { needed(executor, "executor", kAnExecutor)->executor.wait_for_swap(); });
}

int32_t tessera_executor_save_cache(const tessera_executor* executor, const char* file,
                                    const char* type, int32_t include_packs,
                                    tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(executor, "executor", kAnExecutor);
    executor->executor.save_cache(needed(file, "file", kAFile), type_or_all(type),
                                  include_packs != 0);
  });
}

int32_t tessera_executor_load_cache(tessera_executor* executor, const char* file, const char* type,
                                    tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(executor, "executor", kAnExecutor);
    needed(file, "file", kAFile);
    executor->executor.load_cache(file, type_or_all(type));
    executor->forget();
    executor->forget_bindings();
  });
}

int32_t tessera_model_save_cache(const tessera_model* model, const char* file, const char* type,
                                 int32_t include_packs, tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(model, "model", kAModel);
    model->model.save_cache(needed(file, "file", kAFile), type_or_all(type), include_packs != 0);
  });
}

int32_t tessera_model_load_cache(tessera_model* model, const char* file, const char* type,
                                 tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(model, "model", kAModel);
    model->model.load_cache(needed(file, "file", kAFile), type_or_all(type));
  });
}

int32_t tessera_model_save_bundle(const tessera_model* model, const char* file,
                                  const tessera_bind_options* const* options, size_t count,
                                  tessera_failure* failure) {
  return guarded(failure, [&] {
    needed(model, "model", kAModel);
    needed(file, "file", kAFile);
    if (count > 0) needed(options, "options", "an array of bind options");
    std::vector<tessera::BindOptions> binds;
    for (size_t index = 0; index < count; ++index) {
      binds.push_back(needed(options[index], "options", kOptions)->options);
    }
    if (binds.empty()) binds.emplace_back();
    model->model.save_bundle(file, binds);
  });
}
