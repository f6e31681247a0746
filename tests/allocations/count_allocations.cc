// Runs models on bound memory and counts the allocations in the runs. Usage:
//   count_allocations [--new-shapes] BACKENDS THREADS RUNS MODEL...
// With --new-shapes, open dimensions have other sizes in each run, and what counts is how much more
// such runs allocate than runs of one size. Prints one line for each model. {"total": N, "library":
// N}: the number of allocations in all runs except the first, and how many of them a plug-in or a
// library that it uses requested; {"error":
// "..."} if the model cannot be run like this. The program replaces malloc and related functions;
// operator new calls them.
#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/tessera.h"

// The names of glibc for its own.
// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

namespace {

std::atomic<bool> is_counting = false;
std::atomic<long> total = 0;
std::atomic<long> library = 0;
thread_local bool is_inside = false;  // set while counting, whose own allocations do not count

bool begins_with_any(const char* file, std::initializer_list<const char*> names) {
  const char* slash = std::strrchr(file, '/');
  const char* name = slash == nullptr ? file : slash + 1;
  for (const char* known : names) {
    if (std::strncmp(name, known, std::strlen(known)) == 0) return true;
  }
  return false;
}

// Whether the innermost frame outside the C and C++ runtimes belongs to a library. Frame 0 is
// count(), frame 1 the allocation function that was called.
bool is_of_library(void* const* frames, int depth) {
  for (int frame = 2; frame < depth; ++frame) {
    Dl_info found = {};
    if (dladdr(frames[frame], &found) == 0 || found.dli_fname == nullptr) return true;  // JIT code
    if (begins_with_any(found.dli_fname, {"libc.", "libstdc++", "ld-linux"})) continue;
    return begins_with_any(found.dli_fname, {"backend_", "libdnnl", "libtbb", "libopenvino"});
  }
  return false;
}

__attribute__((noinline)) void count() {
  if (!is_counting.load(std::memory_order_relaxed) || is_inside) return;
  is_inside = true;
  std::array<void*, 32> frames = {};
  const int depth = backtrace(frames.data(), static_cast<int>(frames.size()));
  ++total;
  if (is_of_library(frames.data(), depth)) ++library;
  is_inside = false;
}

}  // namespace

extern "C" {

void* malloc(size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void* calloc(size_t number, size_t bytes) {
  count();
  return __libc_calloc(number, bytes);
}
void* realloc(void* memory, size_t bytes) {
  count();
  return __libc_realloc(memory, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  count();
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"

namespace {

// Zeros for an input or output, with `size` for every unknown dimension.
tessera::Tensor zeros(const tessera::ValueDescription& value, int64_t size = 1) {
  std::vector<int64_t> dims;
  for (const tessera::Dimension& dim : value.shape.value()) {
    dims.push_back(dim.value.value_or(size));
  }
  tessera::Tensor tensor(value.type, dims);
  std::memset(tensor.mutable_data(), 0, static_cast<size_t>(tensor.bytes()));
  return tensor;
}

std::vector<std::string> split(const std::string& names) {
  std::vector<std::string> all;
  std::istringstream stream(names);
  for (std::string name; std::getline(stream, name, ',');) all.push_back(name);
  return all;
}

// Shapes of all inputs, with `size` for every unknown dimension.
std::map<std::string, std::vector<int64_t>> shapes_of(const tessera::Model& model,
                                                      int64_t size = 1) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const tessera::ValueDescription& input : model.describe().inputs) {
    if (!input.shape) continue;
    for (const tessera::Dimension& dim : *input.shape) {
      shapes[input.name].push_back(dim.value.value_or(size));
    }
  }
  return shapes;
}

void start_counting() {
  std::array<void*, 4> frames = {};
  backtrace(frames.data(), 4);  // the first call loads libgcc, which allocates
  total = 0;
  library = 0;
  is_counting = true;
}

// The sizes of a run are those of kSizes by turns.
constexpr std::array<int64_t, 3> kSizes = {20, 21, 22};

void count_in_new_shapes(const char* path, const std::string& backends, int threads, int runs) {
  const tessera::Model model = tessera::load(path);
  tessera::Executor executor = model.bind(
      {.shapes = shapes_of(model, kSizes[0]), .threads = threads, .backends = split(backends)});
  std::vector<std::map<std::string, tessera::Tensor>> inputs;
  for (const int64_t size : kSizes) {
    std::map<std::string, tessera::Tensor>& one = inputs.emplace_back();
    for (const auto& input : model.describe().inputs) one.emplace(input.name, zeros(input, size));
    executor.run(one);
  }
  const auto count_runs = [&](size_t sizes) {
    for (int run = 0; run < 3; ++run) executor.run(inputs[static_cast<size_t>(run) % sizes + 1]);
    start_counting();
    for (int run = 0; run < runs; ++run) executor.run(inputs[static_cast<size_t>(run) % sizes + 1]);
    is_counting = false;
    return std::pair(total.load(), library.load());
  };
  const auto [same, same_of_library] = count_runs(1);
  count_runs(2);
  total -= same;
  library -= same_of_library;
}

// Throws if an output's size is known only in the run.
void count_in_runs(const char* path, const std::string& backends, int threads, int runs) {
  const tessera::Model model = tessera::load(path);
  tessera::Executor executor =
      model.bind({.shapes = shapes_of(model), .threads = threads, .backends = split(backends)});
  for (const auto& input : executor.inputs()) executor.bind_input(input.name, zeros(input));
  for (const auto& output : executor.outputs()) executor.bind_output(output.name, zeros(output));
  executor.run_bound();
  start_counting();
  for (int run = 0; run < runs; ++run) executor.run_bound();
  is_counting = false;
}

}  // namespace

int main(int argc, char** argv) {
  const bool has_new_shapes = argc > 1 && std::strcmp(argv[1], "--new-shapes") == 0;
  if (has_new_shapes) {
    ++argv;
    --argc;
  }
  if (argc < 5) return 2;
  for (int index = 4; index < argc; ++index) {
    try {
      (has_new_shapes ? count_in_new_shapes : count_in_runs)(
          argv[index], argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
      std::cout << R"({"total": )" << total << R"(, "library": )" << library << "}\n" << std::flush;
    } catch (const std::exception& error) {
      is_counting = false;
      std::cout << R"({"error": )" << std::quoted(error.what()) << "}\n" << std::flush;
    }
  }
  return 0;
}
