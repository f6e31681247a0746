#include "nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "tessera/backend.h"

namespace tessera::cuda {

using plugin::Failure;

// The library's interface, which has not changed since version 11.
struct NvrtcFunctions {
  using Program = void*;
  using Result = int;

  const char* (*error_text)(Result) = nullptr;
  Result (*version)(int* major, int* minor) = nullptr;
  Result (*create_program)(Program*, const char* source, const char* name, int header_count,
                           const char* const* headers, const char* const* header_names) = nullptr;
  Result (*destroy_program)(Program*) = nullptr;
  Result (*compile_program)(Program, int option_count, const char* const* options) = nullptr;
  Result (*log_size)(Program, size_t*) = nullptr;
  Result (*log)(Program, char*) = nullptr;
  Result (*cubin_size)(Program, size_t*) = nullptr;
  Result (*cubin)(Program, char*) = nullptr;
};

namespace {

constexpr NvrtcFunctions::Result kInvalidOption = 5;  // NVRTC_ERROR_INVALID_OPTION
constexpr NvrtcFunctions::Result kCompilation = 6;    // NVRTC_ERROR_COMPILATION
constexpr size_t kMaxLogLength = 600;

// NVRTC opens a second library by its name. The loader finds a library that is open already without
// the caller's search paths, which sanitizers lose.
void open_builtins(const std::string& folder) {
  std::error_code failure;
  for (const auto& file : std::filesystem::directory_iterator(folder, failure)) {
    const bool is_builtins = file.path().filename().string().starts_with("libnvrtc-builtins.so");
    if (is_builtins) dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

// The library stays open until the process ends, because it has threads and tables of its own.
void* open_library(const std::string& folder) {
  std::string reason;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
    const std::string path = folder.empty() ? name : folder + "/" + name;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) {
      if (!folder.empty()) open_builtins(folder);
      return library;
    }
    const char* message = dlerror();
    if (reason.empty() && message != nullptr) reason = message;
  }
  throw Failure(TESSERA_UNSUPPORTED,
                "NVRTC, the compiler of CUDA, cannot be opened (the Python package "
                "nvidia-cuda-nvrtc has it): " +
                    reason);
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw Failure(TESSERA_UNSUPPORTED, std::string("NVRTC has no function ") + name);
  }
}

// A program of the library.
class Program {
 public:
  Program(const NvrtcFunctions& functions, const std::string& source) : functions_(functions) {
    check(functions_.create_program(&program_, source.c_str(), "fused.cu", 0, nullptr, nullptr));
  }
  ~Program() { functions_.destroy_program(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  NvrtcFunctions::Result compile(const std::vector<std::string>& options) {
    std::vector<const char*> texts;
    for (const std::string& option : options) texts.push_back(option.c_str());
    return functions_.compile_program(program_, static_cast<int>(texts.size()), texts.data());
  }

  std::string log() const {
    size_t size = 0;
    check(functions_.log_size(program_, &size));
    std::string text(size, '\0');
    check(functions_.log(program_, text.data()));
    return text.substr(0, text.find('\0'));
  }

  std::string cubin() const {
    size_t size = 0;
    check(functions_.cubin_size(program_, &size));
    std::string bytes(size, '\0');
    check(functions_.cubin(program_, bytes.data()));
    return bytes;
  }

 private:
  void check(NvrtcFunctions::Result result) const {
    if (result == 0) return;
    throw Failure(TESSERA_DEVICE_FAILED,
                  std::string("NVRTC failed: ") + functions_.error_text(result));
  }

  const NvrtcFunctions& functions_;
  NvrtcFunctions::Program program_ = nullptr;
};

}  // namespace

Nvrtc::Nvrtc(const std::string& folder) : functions_(std::make_unique<NvrtcFunctions>()) {
  void* library = open_library(folder);
  NvrtcFunctions& functions = *functions_;
  find(library, "nvrtcGetErrorString", functions.error_text);
  find(library, "nvrtcVersion", functions.version);
  find(library, "nvrtcCreateProgram", functions.create_program);
  find(library, "nvrtcDestroyProgram", functions.destroy_program);
  find(library, "nvrtcCompileProgram", functions.compile_program);
  find(library, "nvrtcGetProgramLogSize", functions.log_size);
  find(library, "nvrtcGetProgramLog", functions.log);
  find(library, "nvrtcGetCUBINSize", functions.cubin_size);
  find(library, "nvrtcGetCUBIN", functions.cubin);
  int major = 0;
  int minor = 0;
  if (functions.version(&major, &minor) == 0) {
    version_ = std::to_string(major) + "." + std::to_string(minor);
  }
}

Nvrtc::~Nvrtc() = default;

Cubin Nvrtc::compile(const std::string& source, const std::string& architecture,
                     std::span<const std::string> options) const {
  std::vector<std::string> all = {"--gpu-architecture=" + architecture, "--ptxas-options=-v"};
  all.insert(all.end(), options.begin(), options.end());
  Program program(*functions_, source);
  const NvrtcFunctions::Result result = program.compile(all);
  if (result != 0) {
    const std::string log = program.log().substr(0, kMaxLogLength);
    throw Failure(
        result == kInvalidOption ? TESSERA_UNSUPPORTED : TESSERA_DEVICE_FAILED,
        "NVRTC cannot compile for " + architecture + ": " +
            (result == kCompilation || !log.empty() ? log : functions_->error_text(result)));
  }
  return {program.cubin(), program.log()};
}

namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// The number that stands before `text` in the line.
std::optional<int64_t> number_before(std::string_view line, std::string_view text) {
  const size_t end = line.find(text);
  if (end == std::string_view::npos) return std::nullopt;
  size_t begin = end;
  while (begin > 0 && is_digit(line[begin - 1])) --begin;
  int64_t number = 0;
  const auto read = std::from_chars(line.data() + begin, line.data() + end, number);
  if (read.ec != std::errc() || begin == end) return std::nullopt;
  return number;
}

// The text in quotation marks behind `text`.
std::optional<std::string> name_after(std::string_view line, std::string_view text) {
  const size_t found = line.find(text);
  if (found == std::string_view::npos) return std::nullopt;
  const size_t begin = found + text.size();
  const size_t end = line.find('\'', begin);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(line.substr(begin, end - begin));
}

}  // namespace

std::map<std::string, KernelUsage> usage_from_log(std::string_view log) {
  std::map<std::string, KernelUsage> usages;
  KernelUsage* usage = nullptr;
  while (!log.empty()) {
    const size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    if (const auto name = name_after(line, "Compiling entry function '")) usage = &usages[*name];
    if (usage == nullptr) continue;
    const auto read = [&](const char* text, int64_t& number) {
      number = number_before(line, text).value_or(number);
    };
    read(" bytes stack frame", usage->stack_bytes);
    read(" bytes spill stores", usage->spill_store_bytes);
    read(" bytes spill loads", usage->spill_load_bytes);
    read(" registers", usage->registers);
    read(" bytes smem", usage->shared_bytes);
  }
  return usages;
}

}  // namespace tessera::cuda
