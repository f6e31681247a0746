// A device that behaves like an accelerator and tells what a host does wrong: it works
// asynchronously (work_queue.h), its memory cannot be touched by the host (fake_memory.h), it finds
// accesses that nothing orders (happens_before.h), and it fails if told to (ledger.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fake_control.h"
#include "fake_memory.h"
#include "tessera/backend.h"

namespace tessera::fake {

class FakeDevice;
struct Event;
struct Operation;
struct Queue;
struct SharedState;

// Memory that an operation reads or writes.
struct Range {
  const FakeDevice* device = nullptr;    // null: the host's memory
  plugin::DevicePosition position = {};  // of the host: an address and 0
  int64_t bytes = 0;
  bool is_write = false;
  bool is_in_place = false;  // it may overlap the others

  std::string text() const;  // "[0,256)"
};

// Makes an operation of a kernel, a conversion or a copy.
struct Work {
  // Gets the address of each range. It runs on the thread of the queue.
  using Body = std::function<void(std::span<std::byte* const> addresses)>;

  std::shared_ptr<const std::string> name = {};  // "kernel Relu on fake"
  std::vector<Range> ranges = {};
  Body body = {};
  int64_t fake_counters::* counter = nullptr;  // counts the operation
  // Of a copy: counts the bytes of the first range.
  int64_t fake_counters::* byte_counter = nullptr;
};

class FakeDevice : public plugin::DeviceInterface {
 public:
  // The alignment of offsets; different from that of the host's memory.
  static constexpr int64_t kAlignmentBytes = 256;
  // DLPack's device type for devices that it does not know: kDLExtDev.
  static constexpr int32_t kDlpackExtension = 12;

  explicit FakeDevice(int32_t ordinal);
  ~FakeDevice() override;

  const std::string& name() const { return name_; }
  int32_t ordinal() const { return ordinal_; }
  int32_t dlpack_type() const override { return kDlpackExtension; }
  int32_t dlpack_id() const override { return ordinal_; }
  Range range(const plugin::DevicePosition& position, int64_t bytes, bool is_write) const {
    return {this, position, bytes, is_write};
  }

  // The range of a buffer of a kernel or conversion.
  Range range(const plugin::Buffer& buffer, bool is_write) const;

  // Puts `work` into a queue of this device.
  void enqueue(void* queue, Work work);

  int64_t memory_bytes() const override { return memory_bytes_; }
  int64_t max_allocation_bytes() const override { return max_allocation_bytes_; }
  int64_t alignment_bytes() const override { return kAlignmentBytes; }
  bool can_copy_from_peers() const override { return can_copy_from_peers_; }
  bool has_clock() const override { return true; }

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
  void copy_from_peer(void* queue, plugin::DeviceInterface& peer,
                      const plugin::DevicePosition& from, const plugin::DevicePosition& to,
                      int64_t bytes) override;
  void* create_event() override;
  void release_event(void* event) override;
  void record_event(void* queue, void* event) override;
  void wait_event(void* queue, void* event) override;
  void synchronise_event(void* event) override;
  void synchronise_queue(void* queue) override;
  double elapsed_seconds(void* begin, void* end) override;
  void check_usable() override;

 private:
  bool is_forked() const;
  std::unique_lock<std::mutex> enter() const;
  std::optional<plugin::Failure> begin_call(const std::string& call, bool can_fail_later);
  [[noreturn]] void refuse(const std::string& violation);
  void report(const std::string& violation);
  Queue& find_queue(void* queue, const std::string& user);
  Event& find_event(void* event, const std::string& user, bool must_be_own);
  Allocation& find_memory(const Range& range, const std::string& user);
  void check_overlaps(const Work& work);
  void note_accesses(const Work& work, Queue& queue);
  void enqueue_copy(void* queue, const std::string& call, const Range& from, const Range& to,
                    int64_t fake_counters::* counter, int64_t fake_counters::* byte_counter);
  void push(Queue& queue, Operation operation, const std::optional<plugin::Failure>& failure);
  void finish_synchronising(const std::string& call, const std::optional<plugin::Failure>& failure,
                            const VectorClock& clock);

  SharedState* state_;
  int32_t ordinal_;
  std::string name_;
  int64_t memory_bytes_;
  int64_t max_allocation_bytes_;
  bool can_copy_from_peers_;
  int64_t allocations_ = 0;  // so far
};

// Tells the detector that the calling thread reads or writes memory of the host.
void note_host_access(const std::shared_ptr<const std::string>& operation, const void* address,
                      int64_t bytes, bool is_write);

}  // namespace tessera::fake
