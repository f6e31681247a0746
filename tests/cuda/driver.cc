#include "driver.h"

#include <dlfcn.h>

#include <array>

namespace tessera::cuda {

// Types and numbers are those of the driver's interface, whose names end with _v2 if it changed.
struct Driver::Functions {
  int (*init)(unsigned) = nullptr;
  int (*error_name)(int, const char**) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*retain_context)(void**, int) = nullptr;
  int (*set_context)(void*) = nullptr;
  int (*synchronise)() = nullptr;
  int (*load_module)(void**, const void*) = nullptr;
  int (*function)(void**, void*, const char*) = nullptr;
  int (*allocate)(Address*, size_t) = nullptr;
  int (*release)(Address) = nullptr;
  int (*to_device)(Address, const void*, size_t) = nullptr;
  int (*to_host)(void*, Address, size_t) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**) = nullptr;
  int (*create_event)(void**, unsigned) = nullptr;
  int (*destroy_event)(void*) = nullptr;
  int (*record_event)(void*, void*) = nullptr;
  int (*synchronise_event)(void*) = nullptr;
  int (*elapsed_milliseconds)(float*, void*, void*) = nullptr;
};

namespace {

constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw NoDevice(std::string("libcuda.so.1 has no function ") + name);
}

}  // namespace

Driver::Driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw NoDevice(dlerror());
  static Functions functions;
  functions_ = &functions;
  find(library, "cuInit", functions.init);
  find(library, "cuGetErrorName", functions.error_name);
  find(library, "cuDeviceGetCount", functions.device_count);
  find(library, "cuDeviceGet", functions.device);
  find(library, "cuDeviceGetName", functions.device_name);
  find(library, "cuDeviceGetAttribute", functions.device_attribute);
  find(library, "cuDevicePrimaryCtxRetain", functions.retain_context);
  find(library, "cuCtxSetCurrent", functions.set_context);
  find(library, "cuCtxSynchronize", functions.synchronise);
  find(library, "cuModuleLoadData", functions.load_module);
  find(library, "cuModuleGetFunction", functions.function);
  find(library, "cuMemAlloc_v2", functions.allocate);
  find(library, "cuMemFree_v2", functions.release);
  find(library, "cuMemcpyHtoD_v2", functions.to_device);
  find(library, "cuMemcpyDtoH_v2", functions.to_host);
  find(library, "cuLaunchKernel", functions.launch);
  find(library, "cuEventCreate", functions.create_event);
  find(library, "cuEventDestroy_v2", functions.destroy_event);
  find(library, "cuEventRecord", functions.record_event);
  find(library, "cuEventSynchronize", functions.synchronise_event);
  find(library, "cuEventElapsedTime", functions.elapsed_milliseconds);
  int count = 0;
  if (functions.init(0) != 0 || functions.device_count(&count) != 0 || count == 0) {
    throw NoDevice("the driver of CUDA finds no device");
  }
  int device = 0;
  check(functions.device(&device, 0), "cuDeviceGet");
  std::array<char, 256> name = {};
  check(functions.device_name(name.data(), static_cast<int>(name.size()), device),
        "cuDeviceGetName");
  device_name_ = name.data();
  int major = 0;
  int minor = 0;
  check(functions.device_attribute(&major, kComputeCapabilityMajor, device),
        "cuDeviceGetAttribute");
  check(functions.device_attribute(&minor, kComputeCapabilityMinor, device),
        "cuDeviceGetAttribute");
  architecture_ = "sm_" + std::to_string(major) + std::to_string(minor);
  // The context stays until the process ends.
  void* context = nullptr;
  check(functions.retain_context(&context, device), "cuDevicePrimaryCtxRetain");
  check(functions.set_context(context), "cuCtxSetCurrent");
}

Driver::~Driver() = default;

void Driver::check(int result, const char* what) const {
  if (result == 0) return;
  const char* name = nullptr;
  functions_->error_name(result, &name);
  throw std::runtime_error(std::string(what) +
                           " failed: " + (name == nullptr ? std::to_string(result) : name));
}

Driver::Address Driver::allocate(size_t bytes) const {
  Address memory = 0;
  check(functions_->allocate(&memory, bytes), "cuMemAlloc");
  return memory;
}

void Driver::release(Address memory) const { functions_->release(memory); }

void Driver::copy_to_device(const std::string& from, Address to) const {
  check(functions_->to_device(to, from.data(), from.size()), "cuMemcpyHtoD");
}

std::string Driver::copy_to_host(Address from, size_t bytes) const {
  std::string copy(bytes, '\0');
  check(functions_->to_host(copy.data(), from, bytes), "cuMemcpyDtoH");
  return copy;
}

void* Driver::load_kernel(const std::string& cubin, const char* name) const {
  void* module = nullptr;
  void* kernel = nullptr;
  check(functions_->load_module(&module, cubin.data()), "cuModuleLoadData");
  check(functions_->function(&kernel, module, name), "cuModuleGetFunction");
  return kernel;
}

void Driver::launch(void* kernel, int64_t groups, int32_t group_items,
                    std::span<void* const> arguments) const {
  std::vector<void*> addresses(arguments.begin(), arguments.end());
  check(functions_->launch(kernel, static_cast<unsigned>(groups), 1, 1,
                           static_cast<unsigned>(group_items), 1, 1, 0, nullptr, addresses.data(),
                           nullptr),
        "cuLaunchKernel");
}

void Driver::synchronise() const { check(functions_->synchronise(), "cuCtxSynchronize"); }

double Driver::seconds_of_launch(void* kernel, int64_t groups, int32_t group_items,
                                 std::span<void* const> arguments, int launches) const {
  void* begin = nullptr;
  void* end = nullptr;
  check(functions_->create_event(&begin, 0), "cuEventCreate");
  check(functions_->create_event(&end, 0), "cuEventCreate");
  check(functions_->record_event(begin, nullptr), "cuEventRecord");
  for (int index = 0; index < launches; ++index) launch(kernel, groups, group_items, arguments);
  check(functions_->record_event(end, nullptr), "cuEventRecord");
  check(functions_->synchronise_event(end), "cuEventSynchronize");
  float milliseconds = 0;
  check(functions_->elapsed_milliseconds(&milliseconds, begin, end), "cuEventElapsedTime");
  functions_->destroy_event(begin);
  functions_->destroy_event(end);
  return milliseconds / 1e3 / launches;
}

}  // namespace tessera::cuda
