// Launches of this plug-in's own kernels, and kernels that consist of several stages.
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "stage.h"

namespace tessera::opencl {

using plugin::DevicePosition;

namespace {

// Seen by every source. All sizes are below 2^31, so indices are int; offsets are in bytes.
constexpr const char* kPrelude = R"(
#define KERNEL __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#define AT(type, base, at) ((__global type*)((base) + (at)))
// Comparisons with NaN are false, so each of these returns NaN if one operand is NaN.
#define LARGER(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
// A long sum, and beside it what its additions lost to rounding (Knuth, The Art of Computer
// Programming 2, 4.2.2).
float2 added(float2 sum, float x) {
  const float total = sum.x + x;
  const float part = total - sum.x;
  return (float2)(total, sum.y + ((sum.x - (total - part)) + (x - part)));
}
// Beyond infinity, nothing is lost, but NaN.
float rounded(float2 sum) { return isfinite(sum.y) ? sum.x + sum.y : sum.x; }
)";

struct BoundPlace {
  cl_uint index = 0;  // of the pointer; the offset is the next argument
  Place place = {};
};

// A kernel object of OpenCL with its constant arguments. Setting arguments and enqueueing is one
// critical section, because the object has only one set of arguments.
struct PreparedLaunch {
  std::shared_ptr<OpenedDevice> device;
  Shared<cl_program> program;
  Shared<cl_kernel> kernel;
  std::vector<BoundPlace> places;
  size_t items = 0;
  size_t group_items = 0;
  std::mutex mutex;

  void set(cl_uint index, size_t size, const void* value) const {
    check(device->runtime->cl.clSetKernelArg(kernel.get(), index, size, value), "clSetKernelArg");
  }
  void enqueue(const RunBuffers& buffers);
};

void PreparedLaunch::enqueue(const RunBuffers& buffers) {
  const std::lock_guard lock(mutex);
  for (const BoundPlace& bound : places) {
    const DevicePosition position = buffers.find(bound.place);
    auto* memory = static_cast<cl_mem>(position.handle);
    const auto offset = static_cast<cl_ulong>(position.offset_bytes);
    set(bound.index, sizeof(cl_mem), static_cast<const void*>(&memory));
    set(bound.index + 1, sizeof(offset), &offset);
  }
  check(device->runtime->cl.clEnqueueNDRangeKernel(buffers.queue, kernel.get(), 1, nullptr, &items,
                                                   &group_items, 0, nullptr, nullptr),
        "clEnqueueNDRangeKernel");
}

void set_arguments(PreparedLaunch& prepared, const std::vector<Argument>& arguments) {
  cl_uint index = 0;
  for (const Argument& argument : arguments) {
    std::visit(
        [&](const auto& value) {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, Place>) {
            prepared.places.push_back({index, value});
            index += 2;
          } else if constexpr (std::is_same_v<Value, std::vector<int32_t>>) {
            for (const int32_t number : value) prepared.set(index++, sizeof(number), &number);
          } else {
            prepared.set(index++, sizeof(value), &value);
          }
        },
        argument);
  }
}

ProgramSource source_of(const Launch& launch) {
  return {"#define GROUP " + std::to_string(launch.group_items) + "\n" + launch.definitions +
              kPrelude + launch.source,
          launch.is_exact};
}

class StagedKernel : public plugin::Kernel {
 public:
  // `sources` are those of its programs, each once.
  StagedKernel(std::shared_ptr<OpenedDevice> device, std::vector<Stage> stages,
               std::vector<ProgramSource> sources, const Work& work)
      : device_(std::move(device)),
        stages_(std::move(stages)),
        sources_(std::move(sources)),
        workspace_bytes_(work.workspace_bytes),
        expression_(work.expression) {}

  void run(plugin::RunContext& context, std::span<const plugin::Buffer> inputs,
           std::span<const plugin::Buffer> outputs) override {
    device_->runtime->check_process();
    const RunBuffers buffers = {static_cast<cl_command_queue>(context.queue()), inputs, outputs,
                                workspace_bytes_ > 0 ? &context.workspace_position() : nullptr};
    for (const Stage& stage : stages_) stage(buffers);
    // In a bulk, the caller records an event after the last kernel, which flushes the queue.
    if (!context.is_bulk()) check(device_->runtime->cl.clFlush(buffers.queue), "clFlush");
  }
  int64_t workspace_bytes() const override { return workspace_bytes_; }
  std::optional<std::string> save() const override {
    if (sources_.empty()) return std::nullopt;
    return device_->programs.save(sources_);
  }
  std::optional<std::string> text(int32_t form) const override {
    if (form == TESSERA_KERNEL_EXPRESSION && !expression_.empty()) return expression_;
    if (form == TESSERA_KERNEL_SOURCE_EXTENSION) return "cl";
    if (form != TESSERA_KERNEL_SOURCE || sources_.empty()) return std::nullopt;
    std::string all;
    for (const ProgramSource& source : sources_) all += source.text;
    return all;
  }

 private:
  std::shared_ptr<OpenedDevice> device_;
  std::vector<Stage> stages_;
  std::vector<ProgramSource> sources_;
  int64_t workspace_bytes_;
  std::string expression_;
};

}  // namespace

DevicePosition RunBuffers::find(const Place& place) const {
  DevicePosition position;
  switch (place.kind) {
    case Place::Kind::Input:
      position = inputs[place.port].position();
      break;
    case Place::Kind::Output:
      position = outputs[place.port].position();
      break;
    case Place::Kind::Workspace:
      position = *workspace;
      break;
  }
  position.offset_bytes += place.offset_bytes;
  return position;
}

Stage make_launch(const std::shared_ptr<OpenedDevice>& device, const Launch& launch) {
  auto prepared = std::make_shared<PreparedLaunch>();
  prepared->device = device;
  prepared->group_items = static_cast<size_t>(launch.group_items);
  prepared->items = static_cast<size_t>(launch.groups) * prepared->group_items;
  prepared->program = device->programs.get(source_of(launch));
  cl_int status = CL_SUCCESS;
  cl_kernel kernel =
      device->runtime->cl.clCreateKernel(prepared->program.get(), launch.name, &status);
  check(status, "clCreateKernel");
  prepared->kernel = shared(device->runtime, kernel, &Functions::clReleaseKernel);
  set_arguments(*prepared, launch.arguments);
  return [prepared](const RunBuffers& buffers) { prepared->enqueue(buffers); };
}

std::unique_ptr<plugin::Kernel> build_kernel(const std::shared_ptr<OpenedDevice>& device,
                                             const Work& work) {
  std::vector<Stage> stages;
  std::set<ProgramSource> sources;
  for (const auto& step : work.steps) {
    if (const auto* launch = std::get_if<Launch>(&step)) {
      stages.push_back(make_launch(device, *launch));
      sources.insert(source_of(*launch));
    } else {
      stages.push_back(make_product(device, std::get<Product>(step)));
    }
  }
  return std::make_unique<StagedKernel>(
      device, std::move(stages), std::vector<ProgramSource>(sources.begin(), sources.end()), work);
}

}  // namespace tessera::opencl
