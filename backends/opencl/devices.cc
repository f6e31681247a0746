#include "devices.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <sstream>
#include <utility>

namespace tessera::opencl {

using plugin::Failure;

namespace {

constexpr const char* kDrivers = "/etc/OpenCL/vendors";
// The environment variables that decide which drivers are loaded and which devices these find.
constexpr std::array kVariables = {
    "OCL_ICD_VENDORS",        "OCL_ICD_FILENAMES",     "OPENCL_VENDOR_PATH",
    "LD_LIBRARY_PATH",        "POCL_DEVICES",          "POCL_MAX_PTHREAD_COUNT",
    "POCL_MEMORY_LIMIT",      "POCL_CPU_MAX_CU_COUNT", "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",   "HIP_VISIBLE_DEVICES",   "GPU_DEVICE_ORDINAL",
    "ONEAPI_DEVICE_SELECTOR", "ZE_AFFINITY_MASK"};
// The folders in which the system shows accelerators: a container may have the drivers, but other
// devices.
constexpr std::array kDeviceFolders = {"/dev", "/dev/dri", "/dev/accel"};

constexpr const char* kProbe =
    "__kernel void probe(__global float* x) { x[get_global_id(0)] = 1.0f; }";

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return lower;
}

// The file's name, size and time of change, and the same of the library that it names.
void append_stamp(std::ostringstream& text, const std::filesystem::path& file) {
  struct stat found = {};
  if (stat(file.c_str(), &found) != 0) return;
  text << file.string() << ' ' << found.st_size << ' ' << found.st_mtim.tv_sec << '.'
       << found.st_mtim.tv_nsec << '\n';
}

bool is_accelerator(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return file.parent_path() != "/dev" || name.starts_with("nvidia") || name == "kfd" ||
         name == "mali0";
}

// The accelerators that the system shows to this process.
void append_accelerators(std::ostringstream& text) {
  std::vector<std::string> files;
  for (const char* folder : kDeviceFolders) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      if (is_accelerator(entry.path())) files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) text << file << '\n';
}

// Changes if drivers or devices come or go, or if the environment selects others.
std::string drivers_stamp() {
  std::ostringstream text;
  for (const char* variable : kVariables) {
    const char* value = std::getenv(variable);
    if (value != nullptr) text << variable << '=' << value << '\n';
  }
  append_accelerators(text);
  append_stamp(text, kDrivers);
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(kDrivers, ignored)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) append_stamp(text, file);
  // Package managers replace this file with every library that they install or remove.
  append_stamp(text, "/etc/ld.so.cache");
  append_stamp(text, "/proc/driver/nvidia/version");
  return text.str();
}

// Tries to compile and finish a program on the device; returns the reason why that fails, or "".
// PoCL finds out only then whether its LLVM knows the processor.
std::string explain_no_program(const Runtime& runtime, cl_device_id device) {
  const Functions& cl = runtime.cl;
  cl_int status = CL_SUCCESS;
  cl_context context = cl.clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  if (status != CL_SUCCESS) return "it cannot be opened: " + status_text(status);
  const char* text = kProbe;
  cl_program program = cl.clCreateProgramWithSource(context, 1, &text, nullptr, &status);
  if (status == CL_SUCCESS) {
    status = cl.clBuildProgram(program, 1, &device, "", nullptr, nullptr);
    cl_kernel kernel = nullptr;
    if (status == CL_SUCCESS) kernel = cl.clCreateKernel(program, "probe", &status);
    if (kernel != nullptr) cl.clReleaseKernel(kernel);
    cl.clReleaseProgram(program);
  }
  cl.clReleaseContext(context);
  if (status == CL_SUCCESS) return "";
  return "its driver cannot compile a program for this machine: " + status_text(status);
}

bool contains(const DeviceFacts& device, const std::string& selection) {
  return lower_case(device.name).find(selection) != std::string::npos ||
         lower_case(device.platform).find(selection) != std::string::npos;
}

std::string list_text(const std::vector<DeviceFacts>& devices) {
  std::string text;
  for (const DeviceFacts& device : devices) {
    text += (text.empty() ? "" : ", ") + std::to_string(device.ordinal) + " '" + device.name + "'";
  }
  return text;
}

std::string without_separators(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char letter) { return letter == '\t' || letter == '\n'; }, ' ');
  return text;
}

}  // namespace

std::string digest(const std::string& text) {
  // FNV-1a, twice from different starts: names of blobs need no protection against attackers,
  // because only this plug-in writes them.
  constexpr std::array<uint64_t, 2> kStarts = {0xcbf29ce484222325, 0x84222325cbf29ce4};
  constexpr uint64_t kPrime = 0x100000001b3;
  constexpr const char* kDigits = "0123456789abcdef";
  std::string digits;
  for (uint64_t hash : kStarts) {
    for (const char letter : text) hash = (hash ^ static_cast<uint8_t>(letter)) * kPrime;
    for (int shift = 60; shift >= 0; shift -= 4) digits += kDigits[(hash >> shift) & 15];
  }
  return digits;
}

std::vector<DeviceFacts> selected_devices(const std::vector<DeviceFacts>& all,
                                          std::string_view selection) {
  int32_t number = -1;
  const std::string text(selection);
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  const bool is_number = !text.empty() && read.ec == std::errc() && read.ptr == end;
  std::vector<DeviceFacts> matching;
  for (const DeviceFacts& device : all) {
    const bool matches = is_number ? device.ordinal == number : contains(device, lower_case(text));
    if (matches) matching.push_back(device);
  }
  if (matching.empty()) {
    throw Failure(TESSERA_UNSUPPORTED, "TESSERA_OPENCL_DEVICE is '" + text +
                                           "', and the OpenCL devices are " + list_text(all));
  }
  std::vector<DeviceFacts> usable;
  std::copy_if(matching.begin(), matching.end(), std::back_inserter(usable),
               [](const DeviceFacts& device) { return device.explain_unusable.empty(); });
  if (usable.empty()) {
    throw Failure(TESSERA_UNSUPPORTED, "no OpenCL device is usable; '" + matching[0].name +
                                           "': " + matching[0].explain_unusable);
  }
  return usable;
}

std::string devices_as_text(const std::vector<DeviceFacts>& devices) {
  std::ostringstream text;
  for (const DeviceFacts& device : devices) {
    text << device.ordinal << '\t' << without_separators(device.name) << '\t'
         << without_separators(device.platform) << '\t' << without_separators(device.driver) << '\t'
         << without_separators(device.explain_unusable) << '\t' << device.is_cpu << '\t'
         << device.compute_units << '\t' << device.clock_mhz << '\t' << device.memory_bytes << '\t'
         << device.max_allocation_bytes << '\t' << device.alignment_bytes << '\t'
         << device.max_argument_bytes << '\t' << device.has_float64 << '\t'
         << device.divides_exactly << '\n';
  }
  return text.str();
}

std::optional<std::vector<DeviceFacts>> devices_from_text(const std::string& text) {
  std::vector<DeviceFacts> devices;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    DeviceFacts device;
    fields >> device.ordinal;
    fields.get();
    std::getline(fields, device.name, '\t');
    std::getline(fields, device.platform, '\t');
    std::getline(fields, device.driver, '\t');
    std::getline(fields, device.explain_unusable, '\t');
    fields >> device.is_cpu >> device.compute_units >> device.clock_mhz >> device.memory_bytes >>
        device.max_allocation_bytes >> device.alignment_bytes >> device.max_argument_bytes >>
        device.has_float64 >> device.divides_exactly;
    if (!fields) return std::nullopt;
    devices.push_back(std::move(device));
  }
  if (devices.empty()) return std::nullopt;
  return devices;
}

std::vector<DeviceFacts> known_devices(LazyRuntime& runtime, const plugin::Blobs& blobs) {
  const std::string key = "devices/" + digest(drivers_stamp());
  if (const auto stored = blobs.get(key)) {
    if (auto devices = devices_from_text(*stored)) return *std::move(devices);
  }
  const std::shared_ptr<const Runtime> opened = runtime.get();
  std::vector<DeviceFacts> devices;
  for (const FoundDevice& found : opened->devices) {
    devices.push_back(found.facts);
    std::string& reason = devices.back().explain_unusable;
    if (reason.empty()) reason = explain_no_program(*opened, found.id);
  }
  blobs.put(key, devices_as_text(devices));
  return devices;
}

}  // namespace tessera::opencl
