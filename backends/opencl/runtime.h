// OpenCL as this plug-in uses it. libOpenCL.so.1, the loader of drivers, is opened when it is first
// needed, so the program starts on machines without it. devices.h describes what it finds.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/backend.h"

namespace tessera::opencl {

#define TESSERA_OPENCL_FUNCTIONS(APPLY) \
  APPLY(clBuildProgram)                 \
  APPLY(clCreateBuffer)                 \
  APPLY(clCreateCommandQueue)           \
  APPLY(clCreateContext)                \
  APPLY(clCreateKernel)                 \
  APPLY(clCreateProgramWithBinary)      \
  APPLY(clCreateProgramWithSource)      \
  APPLY(clCreateSubBuffer)              \
  APPLY(clCreateUserEvent)              \
  APPLY(clEnqueueBarrierWithWaitList)   \
  APPLY(clEnqueueCopyBuffer)            \
  APPLY(clEnqueueMarkerWithWaitList)    \
  APPLY(clEnqueueNDRangeKernel)         \
  APPLY(clEnqueueReadBuffer)            \
  APPLY(clEnqueueWriteBuffer)           \
  APPLY(clFinish)                       \
  APPLY(clFlush)                        \
  APPLY(clGetDeviceIDs)                 \
  APPLY(clGetDeviceInfo)                \
  APPLY(clGetEventProfilingInfo)        \
  APPLY(clGetMemObjectInfo)             \
  APPLY(clGetPlatformIDs)               \
  APPLY(clGetPlatformInfo)              \
  APPLY(clGetProgramBuildInfo)          \
  APPLY(clGetProgramInfo)               \
  APPLY(clReleaseCommandQueue)          \
  APPLY(clReleaseContext)               \
  APPLY(clReleaseEvent)                 \
  APPLY(clReleaseKernel)                \
  APPLY(clReleaseMemObject)             \
  APPLY(clReleaseProgram)               \
  APPLY(clRetainEvent)                  \
  APPLY(clSetEventCallback)             \
  APPLY(clSetKernelArg)                 \
  APPLY(clSetUserEventStatus)           \
  APPLY(clWaitForEvents)

// The functions of libOpenCL, by their own names.
// NOLINTBEGIN(readability-identifier-naming, bugprone-macro-parentheses)
struct Functions {
#define TESSERA_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
  TESSERA_OPENCL_FUNCTIONS(TESSERA_OPENCL_MEMBER)
#undef TESSERA_OPENCL_MEMBER
};
// NOLINTEND(readability-identifier-naming, bugprone-macro-parentheses)

// Throws Failure unless `status` is CL_SUCCESS: with TESSERA_OUT_OF_MEMORY if memory is missing,
// else with TESSERA_DEVICE_FAILED. `function` is the name of the function that failed.
void check(cl_int status, const char* function);

// The name of a status of OpenCL: "CL_OUT_OF_RESOURCES (-5)".
std::string status_text(cl_int status);

// The facts about a device that are known without opening it.
struct DeviceFacts {
  int32_t ordinal = 0;  // counted over all platforms
  std::string name = {};
  std::string platform = {};  // name
  std::string driver = {};    // versions of driver and platform
  bool is_cpu = false;
  int64_t compute_units = 1;
  int64_t clock_mhz = 1000;
  int64_t memory_bytes = 0;
  int64_t max_allocation_bytes = 0;
  int64_t alignment_bytes = TESSERA_ALIGNMENT_BYTES;  // of sub-buffers
  int64_t max_argument_bytes = 1024;                  // of all arguments of a kernel together
  bool has_float64 = false;
  bool divides_exactly = false;       // can round quotients and square roots of float32 correctly
  std::string explain_unusable = {};  // "" if it is usable

  bool operator==(const DeviceFacts&) const = default;
};

struct FoundDevice {
  DeviceFacts facts;
  cl_device_id id = nullptr;
};

// The opened library with its devices.
struct Runtime {
  Functions cl;
  std::vector<FoundDevice> devices;  // by ordinal
  pid_t process = 0;                 // that opened it

  // A child of fork() has none of the threads and connections that drivers keep.
  bool is_own_process() const { return process == getpid(); }
  // Throws Failure (TESSERA_DEVICE_FAILED) in a child of fork().
  void check_process() const;
};

// Opens the library when it is first needed. Thread-safe.
class LazyRuntime {
 public:
  // Throws Failure (TESSERA_UNSUPPORTED) if there is no OpenCL or no device.
  std::shared_ptr<const Runtime> get();

 private:
  std::mutex mutex_;
  std::shared_ptr<const Runtime> runtime_;
};

// An object of OpenCL that is released with its last copy, unless the process has forked since.
template <class Object>
using Shared = std::shared_ptr<std::remove_pointer_t<Object>>;

template <class Object>
Shared<Object> shared(std::shared_ptr<const Runtime> runtime, Object object,
                      cl_int (*Functions::*release)(Object)) {
  return {object, [runtime = std::move(runtime), release](Object released) {
            if (runtime->is_own_process()) (runtime->cl.*release)(released);
          }};
}

}  // namespace tessera::opencl
