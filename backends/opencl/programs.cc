#include "programs.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <utility>

#include "devices.h"

namespace tessera::opencl {

using plugin::Failure;

namespace {

// No option that relaxes arithmetic: NaN and infinities must be kept. But denormals are zero, as
// they are on the host's threads by default.
constexpr const char* kOptions = "-cl-std=CL1.2 -cl-denorms-are-zero";
constexpr const char* kExactDivision = " -cl-fp32-correctly-rounded-divide-sqrt";
// Fused groups compare values with themselves, and drivers print the number of warnings.
constexpr const char* kNoWarnings = " -w";
constexpr size_t kMaxLogLength = 600;
// If more programs than this are kept, those that no kernel uses are removed.
constexpr size_t kMaxIdlePrograms = 1024;

struct Counters {
  std::atomic<int64_t> asked = 0;
  std::atomic<int64_t> compiled = 0;
  std::atomic<int64_t> loaded = 0;
  std::atomic<int64_t> compile_nanoseconds = 0;
};

Counters& counters() {
  static Counters all;
  return all;
}

}  // namespace

plugin::CompileCounts Programs::counts() {
  const Counters& all = counters();
  const int64_t compiled = all.compiled;
  const int64_t loaded = all.loaded;
  return {.kernels = all.asked,
          .unique = compiled + loaded,
          .compiled = compiled,
          .loaded = loaded,
          .compile_seconds = 1e-9 * static_cast<double>(all.compile_nanoseconds)};
}

std::string Programs::options_of(const ProgramSource& source) const {
  std::string options = kOptions;
  if (source.is_exact) options += kNoWarnings;
  if (source.is_exact && divides_exactly_) options += kExactDivision;
  return options;
}

std::shared_ptr<Programs::Entry> Programs::entry_of(const ProgramSource& source) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Entry>& entry = programs_[source];
  if (entry != nullptr) return entry;
  entry = std::make_shared<Entry>();
  const std::shared_ptr<Entry> made = entry;
  if (programs_.size() > kMaxIdlePrograms) drop_unused();
  return made;
}

// Programs of kernels, and entries that threads wait for, have other owners.
void Programs::drop_unused() {
  std::erase_if(programs_, [](const auto& item) {
    const std::shared_ptr<Entry>& entry = item.second;
    return entry.use_count() == 1 && (entry->program == nullptr || entry->program.use_count() == 1);
  });
}

Shared<cl_program> Programs::get(const ProgramSource& source) {
  const std::shared_ptr<Entry> entry = entry_of(source);
  const std::lock_guard lock(entry->mutex);
  const bool is_known = entry->failure || entry->program != nullptr;
  if (!is_known && !load_stored(source, *entry)) {
    const plugin::BlobClaim claim(blobs_, key_of(source));
    // Another process may have compiled it meanwhile.
    if (!load_stored(source, *entry)) compile(source, *entry);
  }
  if (entry->failure) throw Failure(*entry->failure);
  ++counters().asked;
  return entry->program;
}

bool Programs::load_stored(const ProgramSource& source, Entry& entry) {
  const std::string key = key_of(source);
  if (const auto accepted = take_accepted(key)) {
    entry.program = load(*accepted, options_of(source));
  }
  if (entry.program == nullptr) {
    if (const auto stored = blobs_.get(key)) entry.program = load(*stored, options_of(source));
  }
  if (entry.program == nullptr) return false;
  ++counters().loaded;
  return true;
}

std::optional<std::string> Programs::take_accepted(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto accepted = accepted_.extract(key);
  return accepted.empty() ? std::nullopt : std::optional(std::move(accepted.mapped()));
}

std::string Programs::key_of(const ProgramSource& source) const {
  return "program/" + digest(identity_ + "\n" + options_of(source) + "\n" + source.text);
}

// For each program: its key, a space, the size of the binary, a line break, and the binary.
std::optional<std::string> Programs::save(const std::vector<ProgramSource>& sources) {
  std::string bytes;
  for (const ProgramSource& source : sources) {
    const auto binary = binary_of(get(source).get());
    if (!binary) return std::nullopt;
    bytes += key_of(source) + " " + std::to_string(binary->size()) + "\n" + *binary;
  }
  return bytes;
}

void Programs::accept(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  while (true) {
    const size_t space = bytes.find(' ');
    const size_t line = bytes.find('\n');
    if (space == std::string_view::npos || line == std::string_view::npos || line < space) return;
    size_t size = 0;
    const std::string number(bytes.substr(space + 1, line - space - 1));
    std::from_chars(number.data(), number.data() + number.size(), size);
    const std::string_view rest = bytes.substr(line + 1);
    if (size == 0 || size > rest.size()) return;
    accepted_[std::string(bytes.substr(0, space))] = rest.substr(0, size);
    bytes = rest.substr(size);
  }
}

Shared<cl_program> Programs::load(const std::string& binary, const std::string& options) {
  const Functions& cl = runtime_->cl;
  const size_t size = binary.size();
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int accepted = CL_SUCCESS;
  cl_int status = CL_SUCCESS;
  cl_program made =
      cl.clCreateProgramWithBinary(context_.get(), 1, &device_, &size, &bytes, &accepted, &status);
  if (made == nullptr) return nullptr;
  Shared<cl_program> program = shared(runtime_, made, &Functions::clReleaseProgram);
  if (status != CL_SUCCESS || accepted != CL_SUCCESS) return nullptr;
  status = cl.clBuildProgram(made, 1, &device_, options.c_str(), nullptr, nullptr);
  return status == CL_SUCCESS ? program : nullptr;
}

void Programs::compile(const ProgramSource& source, Entry& entry) {
  const Functions& cl = runtime_->cl;
  const char* text = source.text.c_str();
  cl_int status = CL_SUCCESS;
  cl_program made = cl.clCreateProgramWithSource(context_.get(), 1, &text, nullptr, &status);
  check(status, "clCreateProgramWithSource");
  Shared<cl_program> program = shared(runtime_, made, &Functions::clReleaseProgram);
  ++counters().compiled;
  const auto begin = std::chrono::steady_clock::now();
  status = cl.clBuildProgram(made, 1, &device_, options_of(source).c_str(), nullptr, nullptr);
  const auto passed = std::chrono::steady_clock::now() - begin;
  counters().compile_nanoseconds += std::chrono::nanoseconds(passed).count();
  if (status != CL_SUCCESS) {
    const Failure failure(TESSERA_DEVICE_FAILED, "the OpenCL driver cannot build a program: " +
                                                     status_text(status) + " " + build_log(made));
    if (status != CL_BUILD_PROGRAM_FAILURE) throw Failure(failure);
    entry.failure = failure;
    return;
  }
  entry.program = std::move(program);
  if (const auto binary = binary_of(made)) blobs_.put(key_of(source), *binary);
}

std::optional<std::string> Programs::binary_of(cl_program program) {
  const Functions& cl = runtime_->cl;
  // With one device there is one binary. A driver that has none cannot be helped.
  size_t size = 0;
  if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr) !=
          CL_SUCCESS ||
      size == 0) {
    return std::nullopt;
  }
  std::string binary(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(unsigned char*),
                          static_cast<void*>(&bytes), nullptr) != CL_SUCCESS) {
    return std::nullopt;
  }
  return binary;
}

std::string Programs::build_log(cl_program program) {
  const Functions& cl = runtime_->cl;
  size_t size = 0;
  if (cl.clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) !=
      CL_SUCCESS) {
    return "";
  }
  std::string log(size, '\0');
  cl.clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log.substr(0, std::min(log.find('\0'), kMaxLogLength));
}

}  // namespace tessera::opencl
