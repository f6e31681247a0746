#include "device.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tessera::opencl {

using plugin::DevicePosition;
using plugin::Failure;

namespace {

// An event of the contract can be recorded again and again; one of OpenCL is made by each record.
struct Event {
  std::shared_ptr<const OpenedDevice> device;
  std::mutex mutex;
  cl_event recorded = nullptr;
};

cl_mem memory_of(const DevicePosition& position) { return static_cast<cl_mem>(position.handle); }
cl_command_queue queue_of(void* queue) { return static_cast<cl_command_queue>(queue); }

// The event that was recorded last, with a reference of its own.
Shared<cl_event> recorded_event(void* handle) {
  Event& event = *static_cast<Event*>(handle);
  const std::shared_ptr<const Runtime>& runtime = event.device->runtime;
  const std::lock_guard lock(event.mutex);
  if (event.recorded == nullptr) {
    throw Failure(TESSERA_INVALID_ARGUMENT, "the event was not recorded");
  }
  check(runtime->cl.clRetainEvent(event.recorded), "clRetainEvent");
  return shared(runtime, event.recorded, &Functions::clReleaseEvent);
}

void set_recorded(void* handle, cl_event recorded) {
  Event& event = *static_cast<Event*>(handle);
  const std::lock_guard lock(event.mutex);
  std::swap(event.recorded, recorded);
  if (recorded != nullptr) event.device->runtime->cl.clReleaseEvent(recorded);
}

// A wait list of OpenCL can name events of its own context only. So an event of this context is
// completed by a callback when `foreign`, an event of another device, is.
Shared<cl_event> mirrored_event(const OpenedDevice& device, cl_event foreign) {
  struct Mirror {
    std::shared_ptr<const Runtime> runtime;
    cl_event event;
  };
  const Functions& cl = device.runtime->cl;
  cl_int status = CL_SUCCESS;
  cl_event own = cl.clCreateUserEvent(device.context.get(), &status);
  check(status, "clCreateUserEvent");
  Shared<cl_event> result = shared(device.runtime, own, &Functions::clReleaseEvent);
  check(cl.clRetainEvent(own), "clRetainEvent");
  auto mirror = std::make_unique<Mirror>(Mirror{device.runtime, own});
  const auto complete = [](cl_event, cl_int state, void* user) {
    const std::unique_ptr<Mirror> done(static_cast<Mirror*>(user));
    const Functions& functions = done->runtime->cl;
    functions.clSetUserEventStatus(done->event, std::min<cl_int>(state, CL_COMPLETE));
    functions.clReleaseEvent(done->event);
  };
  Mirror* given = mirror.release();  // to the callback
  status = cl.clSetEventCallback(foreign, CL_COMPLETE, complete, given);
  if (status != CL_SUCCESS) {
    const std::unique_ptr<Mirror> unused(given);
    cl.clReleaseEvent(own);
  }
  check(status, "clSetEventCallback");
  return result;
}

void wait_for(const OpenedDevice& device, cl_event event) {
  check(device.runtime->cl.clWaitForEvents(1, &event), "clWaitForEvents");
}

cl_ulong end_time(const OpenedDevice& device, cl_event event) {
  cl_ulong nanoseconds = 0;
  check(device.runtime->cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END,
                                                   sizeof(nanoseconds), &nanoseconds, nullptr),
        "clGetEventProfilingInfo");
  return nanoseconds;
}

Shared<cl_context> create_context(const std::shared_ptr<const Runtime>& runtime,
                                  cl_device_id device) {
  cl_int status = CL_SUCCESS;
  cl_context context = runtime->cl.clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  check(status, "clCreateContext");
  return shared(runtime, context, &Functions::clReleaseContext);
}

}  // namespace

OpenedDevice::OpenedDevice(std::shared_ptr<const Runtime> opened_runtime, const FoundDevice& found,
                           const plugin::Blobs& kept_blobs)
    : runtime(std::move(opened_runtime)),
      facts(found.facts),
      blobs(kept_blobs),
      id(found.id),
      context(create_context(runtime, id)),
      programs(runtime, context, id, facts, blobs) {}

cl_command_queue OpenedDevice::create_queue() const {
  cl_int status = CL_SUCCESS;
  // The times of events cost little: drivers take them anyway.
  cl_command_queue queue =
      runtime->cl.clCreateCommandQueue(context.get(), id, CL_QUEUE_PROFILING_ENABLE, &status);
  check(status, "clCreateCommandQueue");
  return queue;
}

const std::shared_ptr<OpenedDevice>& Device::opened() {
  const std::lock_guard lock(mutex_);
  if (opened_ != nullptr) {
    opened_->runtime->check_process();
    return opened_;
  }
  std::shared_ptr<const Runtime> runtime = runtime_->get();
  const auto index = static_cast<size_t>(facts_.ordinal);
  const bool is_there = index < runtime->devices.size() &&
                        runtime->devices[index].facts.name == facts_.name &&
                        runtime->devices[index].facts.driver == facts_.driver;
  if (!is_there) {
    throw Failure(TESSERA_DEVICE_FAILED, "the OpenCL device '" + facts_.name + "' is gone");
  }
  opened_ = std::make_shared<OpenedDevice>(runtime, runtime->devices[index], blobs_);
  return opened_;
}

void* Device::allocate(int64_t bytes) {
  // Drivers report this in different ways, or only when the memory is used.
  if (facts_.max_allocation_bytes > 0 && bytes > facts_.max_allocation_bytes) {
    throw Failure(TESSERA_OUT_OF_MEMORY, "'" + facts_.name + "' allocates at most " +
                                             std::to_string(facts_.max_allocation_bytes) +
                                             " bytes at once, and " + std::to_string(bytes) +
                                             " are needed");
  }
  const std::shared_ptr<OpenedDevice>& device = opened();
  cl_int status = CL_SUCCESS;
  cl_mem memory = device->runtime->cl.clCreateBuffer(device->context.get(), CL_MEM_READ_WRITE,
                                                     static_cast<size_t>(bytes), nullptr, &status);
  if (status == CL_OUT_OF_RESOURCES || status == CL_INVALID_BUFFER_SIZE) {
    status = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  }
  check(status, "clCreateBuffer");
  return memory;
}

void Device::release_memory(void* handle) { cl().clReleaseMemObject(static_cast<cl_mem>(handle)); }

void* Device::create_queue() { return opened()->create_queue(); }

void Device::release_queue(void* queue) { cl().clReleaseCommandQueue(queue_of(queue)); }

void Device::copy_to_device(void* queue, const void* from, const DevicePosition& to,
                            int64_t bytes) {
  check(cl().clEnqueueWriteBuffer(queue_of(queue), memory_of(to), CL_FALSE,
                                  static_cast<size_t>(to.offset_bytes), static_cast<size_t>(bytes),
                                  from, 0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
}

void Device::copy_to_host(void* queue, const DevicePosition& from, void* to, int64_t bytes) {
  check(cl().clEnqueueReadBuffer(queue_of(queue), memory_of(from), CL_FALSE,
                                 static_cast<size_t>(from.offset_bytes), static_cast<size_t>(bytes),
                                 to, 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
}

void Device::copy(void* queue, const DevicePosition& from, const DevicePosition& to,
                  int64_t bytes) {
  check(cl().clEnqueueCopyBuffer(
            queue_of(queue), memory_of(from), memory_of(to), static_cast<size_t>(from.offset_bytes),
            static_cast<size_t>(to.offset_bytes), static_cast<size_t>(bytes), 0, nullptr, nullptr),
        "clEnqueueCopyBuffer");
}

void* Device::create_event() {
  auto event = std::make_unique<Event>();
  event->device = opened();
  return event.release();
}

void Device::release_event(void* event) {
  const std::unique_ptr<Event> released(static_cast<Event*>(event));
  if (released->device->runtime->is_own_process()) set_recorded(released.get(), nullptr);
}

void Device::record_event(void* queue, void* event) {
  const Functions& functions = cl();
  cl_event recorded = nullptr;
  check(functions.clEnqueueMarkerWithWaitList(queue_of(queue), 0, nullptr, &recorded),
        "clEnqueueMarkerWithWaitList");
  set_recorded(event, recorded);
  // Another queue or the host may wait for it, so its work has to start.
  check(functions.clFlush(queue_of(queue)), "clFlush");
}

void Device::wait_event(void* queue, void* event) {
  const std::shared_ptr<OpenedDevice>& device = opened();
  Shared<cl_event> awaited = recorded_event(event);
  if (static_cast<Event*>(event)->device != device) {
    awaited = mirrored_event(*device, awaited.get());
  }
  cl_event list = awaited.get();
  check(device->runtime->cl.clEnqueueBarrierWithWaitList(queue_of(queue), 1, &list, nullptr),
        "clEnqueueBarrierWithWaitList");
}

void Device::synchronise_event(void* event) { wait_for(*opened(), recorded_event(event).get()); }

void Device::synchronise_queue(void* queue) {
  const std::shared_ptr<OpenedDevice>& device = opened();
  const Functions& functions = device->runtime->cl;
  // clFinish() does not say whether the work failed.
  cl_event last = nullptr;
  check(functions.clEnqueueMarkerWithWaitList(queue_of(queue), 0, nullptr, &last),
        "clEnqueueMarkerWithWaitList");
  const Shared<cl_event> owner = shared(device->runtime, last, &Functions::clReleaseEvent);
  check(functions.clFlush(queue_of(queue)), "clFlush");
  wait_for(*device, last);
}

double Device::elapsed_seconds(void* begin, void* end) {
  const std::shared_ptr<OpenedDevice>& device = opened();
  const cl_ulong first = end_time(*device, recorded_event(begin).get());
  const cl_ulong last = end_time(*device, recorded_event(end).get());
  constexpr double kSecondsPerTick = 1e-9;
  return last > first ? static_cast<double>(last - first) * kSecondsPerTick : 0;
}

void Device::check_usable() {
  const std::shared_ptr<OpenedDevice>& device = opened();
  const Shared<cl_command_queue> queue =
      shared(device->runtime, device->create_queue(), &Functions::clReleaseCommandQueue);
  synchronise_queue(queue.get());
}

}  // namespace tessera::opencl
