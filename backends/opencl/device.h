// A device of OpenCL as Tessera's contract sees it: memory, queues, copies, events. Handles are
// cl_mem, cl_command_queue and Event*.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "programs.h"
#include "runtime.h"

namespace tessera::opencl {

// A device that is in use: its context, and the programs that were built for it.
struct OpenedDevice {
  OpenedDevice(std::shared_ptr<const Runtime> opened_runtime, const FoundDevice& found,
               const plugin::Blobs& kept_blobs);

  std::shared_ptr<const Runtime> runtime;
  DeviceFacts facts;
  plugin::Blobs blobs;
  cl_device_id id;
  Shared<cl_context> context;
  Programs programs;

  // The caller owns the queue.
  cl_command_queue create_queue() const;
};

// Opens the device when it is first used: describing it must cost little.
class Device : public plugin::DeviceInterface {
 public:
  Device(DeviceFacts facts, std::shared_ptr<LazyRuntime> runtime, plugin::Blobs blobs)
      : facts_(std::move(facts)), runtime_(std::move(runtime)), blobs_(blobs) {}

  const DeviceFacts& facts() const { return facts_; }
  const plugin::Blobs& blobs() const { return blobs_; }
  // Throws Failure (TESSERA_DEVICE_FAILED) if this device is gone, or if this process is a child of
  // the one that opened it.
  const std::shared_ptr<OpenedDevice>& opened();

  int64_t memory_bytes() const override { return facts_.memory_bytes; }
  int64_t max_allocation_bytes() const override { return facts_.max_allocation_bytes; }
  int64_t alignment_bytes() const override { return facts_.alignment_bytes; }

  void* allocate(int64_t bytes) override;
  void release_memory(void* handle) override;

  void* create_queue() override;
  void release_queue(void* queue) override;

  void copy_to_device(void* queue, const void* from, const plugin::DevicePosition& to,
                      int64_t bytes) override;
  void copy_to_host(void* queue, const plugin::DevicePosition& from, void* to,
                    int64_t bytes) override;
  void copy(void* queue, const plugin::DevicePosition& from, const plugin::DevicePosition& to,
            int64_t bytes) override;

  void* create_event() override;
  void release_event(void* event) override;
  void record_event(void* queue, void* event) override;
  void wait_event(void* queue, void* event) override;

  void synchronise_event(void* event) override;
  void synchronise_queue(void* queue) override;

  bool has_clock() const override { return true; }
  double elapsed_seconds(void* begin, void* end) override;

  // kDLOpenCL, whose data is a cl_mem too.
  int32_t dlpack_type() const override { return 4; }
  int32_t dlpack_id() const override { return facts_.ordinal; }

  void check_usable() override;

 private:
  const Functions& cl() { return opened()->runtime->cl; }

  DeviceFacts facts_;
  std::shared_ptr<LazyRuntime> runtime_;
  plugin::Blobs blobs_;
  std::mutex mutex_;
  std::shared_ptr<OpenedDevice> opened_;
};

}  // namespace tessera::opencl
