// Steps of Work, built: functions that enqueue them.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "device.h"
#include "work.h"

namespace tessera::opencl {

// The arguments that one run passes to its stages.
struct RunBuffers {
  cl_command_queue queue = nullptr;
  std::span<const plugin::Buffer> inputs = {};
  std::span<const plugin::Buffer> outputs = {};
  const plugin::DevicePosition* workspace = nullptr;

  plugin::DevicePosition find(const Place& place) const;
};

// Enqueues one step. Thread-safe.
using Stage = std::function<void(const RunBuffers& buffers)>;

Stage make_launch(const std::shared_ptr<OpenedDevice>& device, const Launch& launch);

// Throws Failure (TESSERA_UNSUPPORTED) if CLBlast is missing.
Stage make_product(const std::shared_ptr<OpenedDevice>& device, const Product& product);

}  // namespace tessera::opencl
