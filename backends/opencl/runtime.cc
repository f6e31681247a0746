#include "runtime.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <map>
#include <utility>

namespace tessera::opencl {

using plugin::Failure;

namespace {

constexpr const char* kOpenclLibrary = "libOpenCL.so.1";
constexpr const char* kInstall =
    "(Debian: apt-get install ocl-icd-libopencl1 and a driver, for example pocl-opencl-icd)";
// A status of the extension cl_khr_icd: the loader found no driver.
constexpr cl_int kPlatformNotFound = -1001;
// The largest group of work-items that the kernels of this plug-in use.
constexpr size_t kMinGroupItems = 256;

Functions open_loader() {
  // Never closed: drivers have threads that live longer than any object that could close it.
  void* library = dlopen(kOpenclLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw Failure(TESSERA_UNSUPPORTED, std::string("OpenCL cannot be loaded: ") +
                                           (reason ? reason : "?") + " " + kInstall);
  }
  Functions functions;
  const auto resolve = [&]<class Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function != nullptr) return;
    throw Failure(TESSERA_UNSUPPORTED, std::string(kOpenclLibrary) + " has no " + name +
                                           "; expected OpenCL 1.2 or newer");
  };
#define TESSERA_OPENCL_RESOLVE(name) resolve(functions.name, #name);
  TESSERA_OPENCL_FUNCTIONS(TESSERA_OPENCL_RESOLVE)
#undef TESSERA_OPENCL_RESOLVE
  return functions;
}

// Restores what the program does on signals. PoCL and its LLVM install handlers of their own for
// most signals when devices are first asked for, and not again later.
class SignalGuard {
 public:
  SignalGuard() {
    for (size_t number = 1; number < kept_.size(); ++number) {
      is_kept_[number] = sigaction(static_cast<int>(number), nullptr, &kept_[number]) == 0;
    }
  }
  ~SignalGuard() {
    for (size_t number = 1; number < kept_.size(); ++number) {
      if (is_kept_[number]) sigaction(static_cast<int>(number), &kept_[number], nullptr);
    }
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  std::array<struct sigaction, NSIG> kept_ = {};
  std::array<bool, NSIG> is_kept_ = {};
};

std::string platform_text(const Functions& cl, cl_platform_id platform, cl_platform_info what) {
  size_t size = 0;
  check(cl.clGetPlatformInfo(platform, what, 0, nullptr, &size), "clGetPlatformInfo");
  std::string text(size, '\0');
  check(cl.clGetPlatformInfo(platform, what, size, text.data(), nullptr), "clGetPlatformInfo");
  return text.substr(0, text.find('\0'));
}

std::string device_text(const Functions& cl, cl_device_id device, cl_device_info what) {
  size_t size = 0;
  check(cl.clGetDeviceInfo(device, what, 0, nullptr, &size), "clGetDeviceInfo");
  std::string text(size, '\0');
  check(cl.clGetDeviceInfo(device, what, size, text.data(), nullptr), "clGetDeviceInfo");
  return text.substr(0, text.find('\0'));
}

template <class Number>
Number device_number(const Functions& cl, cl_device_id device, cl_device_info what) {
  Number number = {};
  check(cl.clGetDeviceInfo(device, what, sizeof(number), &number, nullptr), "clGetDeviceInfo");
  return number;
}

std::string explain_unusable(const Functions& cl, cl_device_id device) {
  if (device_number<cl_bool>(cl, device, CL_DEVICE_AVAILABLE) == CL_FALSE) {
    return "the device is not available";
  }
  if (device_number<cl_bool>(cl, device, CL_DEVICE_COMPILER_AVAILABLE) == CL_FALSE) {
    return "its driver has no compiler";
  }
  if (device_number<cl_bool>(cl, device, CL_DEVICE_ENDIAN_LITTLE) == CL_FALSE) {
    return "its bytes are in big-endian order";
  }
  const auto items = device_number<size_t>(cl, device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  if (items < kMinGroupItems) {
    return "expected groups of " + std::to_string(kMinGroupItems) + " work-items, found at most " +
           std::to_string(items);
  }
  return "";
}

DeviceFacts facts_of(const Functions& cl, cl_platform_id platform, cl_device_id device) {
  DeviceFacts facts;
  facts.name = device_text(cl, device, CL_DEVICE_NAME);
  facts.platform = platform_text(cl, platform, CL_PLATFORM_NAME);
  // PoCL names its LLVM in the version of its platform.
  facts.driver = device_text(cl, device, CL_DRIVER_VERSION) + ", " +
                 platform_text(cl, platform, CL_PLATFORM_VERSION);
  facts.is_cpu =
      (device_number<cl_device_type>(cl, device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  facts.compute_units = device_number<cl_uint>(cl, device, CL_DEVICE_MAX_COMPUTE_UNITS);
  facts.clock_mhz = device_number<cl_uint>(cl, device, CL_DEVICE_MAX_CLOCK_FREQUENCY);
  facts.memory_bytes =
      static_cast<int64_t>(device_number<cl_ulong>(cl, device, CL_DEVICE_GLOBAL_MEM_SIZE));
  facts.max_allocation_bytes =
      static_cast<int64_t>(device_number<cl_ulong>(cl, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  const auto bits = device_number<cl_uint>(cl, device, CL_DEVICE_MEM_BASE_ADDR_ALIGN);
  facts.alignment_bytes = std::clamp<int64_t>(std::bit_ceil(bits / 8), TESSERA_ALIGNMENT_BYTES,
                                              TESSERA_MAX_DEVICE_ALIGNMENT_BYTES);
  facts.max_argument_bytes =
      static_cast<int64_t>(device_number<size_t>(cl, device, CL_DEVICE_MAX_PARAMETER_SIZE));
  facts.has_float64 =
      device_number<cl_device_fp_config>(cl, device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  facts.divides_exactly =
      (device_number<cl_device_fp_config>(cl, device, CL_DEVICE_SINGLE_FP_CONFIG) &
       CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  facts.explain_unusable = explain_unusable(cl, device);
  return facts;
}

std::vector<FoundDevice> find_devices(const Functions& cl) {
  const SignalGuard guard;
  cl_uint platform_count = 0;
  const cl_int status = cl.clGetPlatformIDs(0, nullptr, &platform_count);
  if (status == kPlatformNotFound || (status == CL_SUCCESS && platform_count == 0)) {
    throw Failure(TESSERA_UNSUPPORTED, std::string("no OpenCL driver is installed ") + kInstall);
  }
  check(status, "clGetPlatformIDs");
  std::vector<cl_platform_id> platforms(platform_count);
  check(cl.clGetPlatformIDs(platform_count, platforms.data(), nullptr), "clGetPlatformIDs");
  std::vector<FoundDevice> found;
  for (cl_platform_id platform : platforms) {
    cl_uint count = 0;
    // A driver without a device reports an error. That is no reason to leave out the others.
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> devices(count);
    check(cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr),
          "clGetDeviceIDs");
    for (cl_device_id device : devices) {
      found.push_back({facts_of(cl, platform, device), device});
      found.back().facts.ordinal = static_cast<int32_t>(found.size() - 1);
    }
  }
  if (found.empty()) {
    throw Failure(TESSERA_UNSUPPORTED,
                  std::string("the OpenCL drivers found no device ") + kInstall);
  }
  return found;
}

}  // namespace

std::string status_text(cl_int status) {
  static const std::map<cl_int, const char*> kNames = {
      {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND"},
      {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
      {CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE"},
      {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
      {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
      {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
      {CL_PROFILING_INFO_NOT_AVAILABLE, "CL_PROFILING_INFO_NOT_AVAILABLE"},
      {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
      {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "a command before it failed"},
      {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
      {CL_INVALID_CONTEXT, "CL_INVALID_CONTEXT"},
      {CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE"},
      {CL_INVALID_MEM_OBJECT, "CL_INVALID_MEM_OBJECT"},
      {CL_INVALID_BINARY, "CL_INVALID_BINARY"},
      {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
      {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
      {CL_INVALID_EVENT, "CL_INVALID_EVENT"},
      {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
  };
  const auto found = kNames.find(status);
  const std::string number = std::to_string(status);
  return found == kNames.end() ? "status " + number
                               : std::string(found->second) + " (" + number + ")";
}

void check(cl_int status, const char* function) {
  if (status == CL_SUCCESS) return;
  const bool is_memory =
      status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_HOST_MEMORY;
  throw Failure(is_memory ? TESSERA_OUT_OF_MEMORY : TESSERA_DEVICE_FAILED,
                std::string(function) + " of OpenCL failed: " + status_text(status));
}

void Runtime::check_process() const {
  if (is_own_process()) return;
  throw Failure(TESSERA_DEVICE_FAILED,
                "the OpenCL device was opened before fork(), and a child process cannot use it");
}

std::shared_ptr<const Runtime> LazyRuntime::get() {
  const std::lock_guard lock(mutex_);
  if (runtime_ == nullptr) {
    auto opened = std::make_shared<Runtime>();
    opened->cl = open_loader();
    opened->devices = find_devices(opened->cl);
    opened->process = getpid();
    runtime_ = std::move(opened);
  }
  runtime_->check_process();
  return runtime_;
}

}  // namespace tessera::opencl
