// The driver of CUDA as tests use it, opened on demand and declared here, because no header of CUDA
// is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::cuda {

// Thrown with the reason why there is no device here.
class NoDevice : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The first GPU. Functions throw std::runtime_error with the driver's name of the error.
class Driver {
 public:
  // Throws NoDevice if libcuda.so.1 or a device is missing.
  Driver();
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  const std::string& device_name() const { return device_name_; }
  // "sm_90".
  const std::string& architecture() const { return architecture_; }

  using Address = unsigned long long;  // in the memory of the device
  Address allocate(size_t bytes) const;
  void release(Address memory) const;
  void copy_to_device(const std::string& from, Address to) const;
  std::string copy_to_host(Address from, size_t bytes) const;

  // Loads a cubin and finds its kernel `name`. The module stays loaded.
  void* load_kernel(const std::string& cubin, const char* name) const;
  // `arguments` are addresses of the arguments.
  void launch(void* kernel, int64_t groups, int32_t group_items,
              std::span<void* const> arguments) const;
  void synchronise() const;
  // The mean time of a launch.
  double seconds_of_launch(void* kernel, int64_t groups, int32_t group_items,
                           std::span<void* const> arguments, int launches) const;

 private:
  struct Functions;
  void check(int result, const char* what) const;

  Functions* functions_;
  std::string device_name_;
  std::string architecture_;
};

}  // namespace tessera::cuda
