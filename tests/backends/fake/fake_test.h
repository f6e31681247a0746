// The plug-in `fake` as the host sees it: the C structs that it fills, with checks. Shared by its
// tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "fake_control.h"
#include "tessera/backend_abi.h"

extern "C" int32_t tessera_open_backend(const tessera_host* host, tessera_backend* backend,
                                        tessera_error* error);

namespace tessera::fake {

// The functions of one device. Each expects success.
class TestedDevice {
 public:
  explicit TestedDevice(const tessera_device_interface& abi) : abi_(&abi) {}

  const tessera_device_interface& abi() const { return *abi_; }
  void* self() const { return abi_->self; }

  void* allocate(int64_t bytes) const {
    void* handle = nullptr;
    expect_ok(abi_->allocate(self(), bytes, &handle, &error_));
    return handle;
  }
  void release(void* handle) const { abi_->release_memory(self(), handle); }
  void* create_queue() const {
    void* queue = nullptr;
    expect_ok(abi_->create_queue(self(), &queue, &error_));
    return queue;
  }
  void release_queue(void* queue) const { abi_->release_queue(self(), queue); }
  void* create_event() const {
    void* event = nullptr;
    expect_ok(abi_->create_event(self(), &event, &error_));
    return event;
  }
  void release_event(void* event) const { abi_->release_event(self(), event); }

  template <class T>
  void write(void* queue, const std::vector<T>& from, void* handle, int64_t offset = 0) const {
    const tessera_device_position to{handle, offset};
    expect_ok(abi_->copy_to_device(self(), queue, from.data(), &to, bytes_of(from), &error_));
  }
  template <class T>
  void read(void* queue, void* handle, std::vector<T>& to, int64_t offset = 0) const {
    const tessera_device_position from{handle, offset};
    expect_ok(abi_->copy_to_host(self(), queue, &from, to.data(), bytes_of(to), &error_));
  }
  void copy(void* queue, tessera_device_position from, tessera_device_position to,
            int64_t bytes) const {
    expect_ok(abi_->copy(self(), queue, &from, &to, bytes, &error_));
  }
  void copy_from_peer(void* queue, const TestedDevice& peer, void* from, void* to,
                      int64_t bytes) const {
    const tessera_device_position source{from, 0};
    const tessera_device_position target{to, 0};
    expect_ok(abi_->copy_from_peer(self(), queue, peer.abi_, &source, &target, bytes, &error_));
  }
  void record(void* queue, void* event) const {
    expect_ok(abi_->record_event(self(), queue, event, &error_));
  }
  void wait(void* queue, void* event) const {
    expect_ok(abi_->wait_event(self(), queue, event, &error_));
  }
  void synchronise_event(void* event) const {
    expect_ok(abi_->synchronise_event(self(), event, &error_));
  }
  void synchronise(void* queue) const {
    expect_ok(abi_->synchronise_queue(self(), queue, &error_));
  }

  tessera_error* error() const { return &error_; }
  std::string message() const { return error_.message; }

 private:
  template <class T>
  static int64_t bytes_of(const std::vector<T>& elements) {
    return static_cast<int64_t>(elements.size() * sizeof(T));
  }
  void expect_ok(int32_t status) const { EXPECT_EQ(status, TESSERA_OK) << error_.message; }

  const tessera_device_interface* abi_;
  mutable tessera_error error_ = {sizeof(tessera_error), 0, ""};
};

// The opened plug-in. A test expects no violation unless it takes those that it caused.
class FakeTest : public ::testing::Test {
 protected:
  // Opens the plug-in anew with these settings.
  void open(const std::string& settings) {
    close();
    ASSERT_EQ(fake_configure_text(settings.c_str()), 0) << settings;
    fake_reset_counters();
    backend_ = {};
    backend_.struct_size = sizeof(backend_);
    tessera_error error = {};
    ASSERT_EQ(tessera_open_backend(nullptr, &backend_, &error), TESSERA_OK) << error.message;
    is_open_ = true;
  }

  void close() {
    if (is_open_) backend_.release(backend_.self);
    is_open_ = false;
  }

  TestedDevice device(int32_t ordinal = 0) const {
    return TestedDevice(*backend_.device_interfaces[ordinal + 1]);
  }

  static fake_counters counters(int32_t ordinal = -1) {
    fake_counters counters;
    fake_get_counters(ordinal, &counters);
    return counters;
  }

  // The violations so far, one a line, which are then forgotten.
  static std::string take_violations() {
    std::string all;
    char text[1000];
    for (int64_t index = 0; fake_violation(index, text, sizeof(text)) >= 0; ++index) {
      all += std::string(text) + "\n";
    }
    fake_reset_counters();
    return all;
  }

  void TearDown() override {
    close();
    EXPECT_EQ(take_violations(), "");
    EXPECT_EQ(counters().live_bytes, 0);
    EXPECT_EQ(counters().live_queues, 0);
    EXPECT_EQ(counters().live_events, 0);
  }

  const tessera_backend& backend() const { return backend_; }

 private:
  tessera_backend backend_ = {};
  bool is_open_ = false;
};

}  // namespace tessera::fake
