// Failures that tests ask for: what the host sees, and that nothing is left over afterwards.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fake_test.h"

namespace tessera::fake {
namespace {

constexpr int64_t kCopiedBytes = 512;

// Two devices compute something together. Like a host, it stops at the first failure and then
// releases everything, queues first.
class Scenario {
 public:
  explicit Scenario(std::vector<TestedDevice> devices) : devices_(std::move(devices)) {}

  int32_t run() {
    const int32_t status = run_until_failure();
    for (size_t index = 0; index < 2; ++index) {
      if (queues_[index] != nullptr) devices_[index].release_queue(queues_[index]);
    }
    // Released only now, because the queue of the other device may have used the memory.
    for (size_t index = 0; index < 2; ++index) {
      if (events_[index] != nullptr) devices_[index].release_event(events_[index]);
      if (memory_[index] != nullptr) devices_[index].release(memory_[index]);
    }
    return status;
  }

  bool is_result_right() const {
    return std::ranges::all_of(to_, [](uint8_t byte) { return byte == 7; });
  }

 private:
  int32_t run_until_failure() {
    int32_t status = TESSERA_OK;
    const auto failed = [&](int32_t of_call) {
      status = of_call;
      return status != TESSERA_OK;
    };
    tessera_error error = {};
    for (size_t index = 0; index < 2; ++index) {
      const tessera_device_interface& abi = devices_[index].abi();
      if (failed(abi.create_queue(abi.self, &queues_[index], &error))) return status;
      if (failed(abi.create_event(abi.self, &events_[index], &error))) return status;
      if (failed(abi.allocate(abi.self, kCopiedBytes, &memory_[index], &error))) return status;
    }
    const tessera_device_interface& first = devices_[0].abi();
    const tessera_device_interface& second = devices_[1].abi();
    const tessera_device_position at_first{memory_[0], 0};
    const tessera_device_position at_second{memory_[1], 0};
    if (failed(first.copy_to_device(first.self, queues_[0], from_.data(), &at_first, kCopiedBytes,
                                    &error)) ||
        failed(first.record_event(first.self, queues_[0], events_[0], &error)) ||
        failed(second.wait_event(second.self, queues_[1], events_[0], &error)) ||
        failed(second.copy_from_peer(second.self, queues_[1], &first, &at_first, &at_second,
                                     kCopiedBytes, &error)) ||
        failed(second.copy_to_host(second.self, queues_[1], &at_second, to_.data(), kCopiedBytes,
                                   &error)) ||
        failed(second.record_event(second.self, queues_[1], events_[1], &error)) ||
        failed(second.synchronise_event(second.self, events_[1], &error))) {
      return status;
    }
    failed(first.synchronise_queue(first.self, queues_[0], &error));
    return status;
  }

  std::vector<TestedDevice> devices_;
  void* queues_[2] = {};
  void* events_[2] = {};
  void* memory_[2] = {};
  std::vector<uint8_t> from_ = std::vector<uint8_t>(kCopiedBytes, 7);
  std::vector<uint8_t> to_ = std::vector<uint8_t>(kCopiedBytes, 0);
};

struct Mode {
  int64_t mode;
  int64_t later;
  int32_t status;
};

constexpr Mode kModes[] = {{FAKE_FAILS_OUT_OF_MEMORY, 0, TESSERA_OUT_OF_MEMORY},
                           {FAKE_FAILS_OUT_OF_MEMORY, 1, TESSERA_OUT_OF_MEMORY},
                           {FAKE_FAILS, 0, TESSERA_DEVICE_FAILED},
                           {FAKE_FAILS, 1, TESSERA_DEVICE_FAILED},
                           {FAKE_IS_LOST, 0, TESSERA_DEVICE_FAILED},
                           {FAKE_IS_LOST, 1, TESSERA_DEVICE_FAILED}};

std::string settings_for(const Mode& mode, int64_t fail_at) {
  return "devices=2,delay_us=20,fail_at=" + std::to_string(fail_at) +
         ",fail_mode=" + std::to_string(mode.mode) + ",fail_later=" + std::to_string(mode.later);
}

class FakeFailureTest : public FakeTest {};

TEST_F(FakeFailureTest, every_call_can_fail_and_nothing_is_left_over) {
  open("devices=2");
  {
    Scenario undisturbed({device(0), device(1)});
    EXPECT_EQ(undisturbed.run(), TESSERA_OK);
    EXPECT_TRUE(undisturbed.is_result_right());
  }
  const int64_t calls = counters().calls;
  EXPECT_EQ(calls, 14);
  for (const Mode& mode : kModes) {
    for (int64_t call = 1; call <= calls; ++call) {
      SCOPED_TRACE(settings_for(mode, call));
      open(settings_for(mode, call));
      Scenario disturbed({device(0), device(1)});
      EXPECT_EQ(disturbed.run(), mode.status);
      EXPECT_EQ(counters().failures, 1);
      EXPECT_EQ(counters().live_bytes, 0);
      EXPECT_EQ(counters().live_queues, 0);
      EXPECT_EQ(counters().live_events, 0);
      const bool is_lost =
          std::ranges::any_of(std::vector{device(0), device(1)}, [](const TestedDevice& fake) {
            return fake.abi().check_usable(fake.self(), fake.error()) != TESSERA_OK;
          });
      EXPECT_EQ(is_lost, mode.mode == FAKE_IS_LOST);
      if (!is_lost) {
        Scenario next({device(0), device(1)});
        EXPECT_EQ(next.run(), TESSERA_OK);
        EXPECT_TRUE(next.is_result_right());
      }
      EXPECT_EQ(take_violations(), "");
    }
  }
}

TEST_F(FakeFailureTest, enqueued_work_fails_at_the_next_synchronisation) {
  open("fail_at=4,fail_later=1");
  const TestedDevice fake = device();
  void* queue = fake.create_queue();
  void* memory = fake.allocate(kCopiedBytes);
  const std::vector<uint8_t> from(kCopiedBytes, 7);
  std::vector<uint8_t> to(kCopiedBytes, 1);
  fake.write(queue, from, memory);
  fake.read(queue, memory, to);  // fails
  fake.read(queue, memory, to);  // is not executed any more
  for (int call = 0; call < 2; ++call) {
    EXPECT_EQ(fake.abi().synchronise_queue(fake.self(), queue, fake.error()),
              TESSERA_DEVICE_FAILED);
    EXPECT_EQ(fake.message(), "copy_to_host on fake was told to fail");
  }
  EXPECT_EQ(to, std::vector<uint8_t>(kCopiedBytes, 1));
  EXPECT_EQ(fake.abi().check_usable(fake.self(), fake.error()), TESSERA_OK);
  // The memory keeps its contents, and a new queue works.
  void* next = fake.create_queue();
  fake.read(next, memory, to);
  fake.synchronise(next);
  EXPECT_EQ(to, from);
  fake.release_queue(queue);
  fake.release_queue(next);
  fake.release(memory);
}

TEST_F(FakeFailureTest, work_that_waits_for_failed_work_fails_too) {
  open("devices=2,fail_at=6,fail_later=1,delay_us=100");
  const TestedDevice first = device(0);
  const TestedDevice second = device(1);
  void* queues[] = {first.create_queue(), second.create_queue()};
  void* event = first.create_event();
  void* memory[] = {first.allocate(kCopiedBytes), second.allocate(kCopiedBytes)};
  const std::vector<uint8_t> from(kCopiedBytes, 7);
  first.write(queues[0], from, memory[0]);  // fails
  first.record(queues[0], event);
  second.wait(queues[1], event);
  second.copy_from_peer(queues[1], first, memory[0], memory[1], kCopiedBytes);
  EXPECT_EQ(second.abi().synchronise_queue(second.self(), queues[1], second.error()),
            TESSERA_DEVICE_FAILED);
  EXPECT_EQ(second.message(),
            "it waited for work that failed: copy_to_device on fake was told to fail");
  EXPECT_EQ(first.abi().synchronise_event(first.self(), event, first.error()),
            TESSERA_DEVICE_FAILED);
  first.release_event(event);
  for (int index = 0; index < 2; ++index) {
    device(index).release_queue(queues[index]);
    device(index).release(memory[index]);
  }
}

TEST_F(FakeFailureTest, a_lost_device_stays_lost_until_it_is_configured) {
  open("fail_at=2,fail_mode=2");
  const TestedDevice fake = device();
  void* queue = fake.create_queue();
  void* memory = nullptr;
  EXPECT_EQ(fake.abi().allocate(fake.self(), 1, &memory, fake.error()), TESSERA_DEVICE_FAILED);
  EXPECT_EQ(fake.abi().allocate(fake.self(), 1, &memory, fake.error()), TESSERA_DEVICE_FAILED);
  EXPECT_EQ(fake.message(), "the device is lost");
  EXPECT_EQ(fake.abi().synchronise_queue(fake.self(), queue, fake.error()), TESSERA_DEVICE_FAILED);
  EXPECT_EQ(fake.abi().check_usable(fake.self(), fake.error()), TESSERA_DEVICE_FAILED);
  fake.release_queue(queue);
  ASSERT_EQ(fake_configure_text(""), 0);
  EXPECT_EQ(fake.abi().check_usable(fake.self(), fake.error()), TESSERA_OK);
}

TEST_F(FakeFailureTest, memory_is_limited) {
  open("memory_bytes=1000");
  const TestedDevice fake = device();
  void* memory = fake.allocate(600);
  void* more = nullptr;
  EXPECT_EQ(fake.abi().allocate(fake.self(), 500, &more, fake.error()), TESSERA_OUT_OF_MEMORY);
  EXPECT_EQ(fake.message(), "it has 400 of 1000 bytes left");
  fake.release(memory);
  more = fake.allocate(1000);
  fake.release(more);
  EXPECT_EQ(counters().peak_bytes, 1000);
}

}  // namespace
}  // namespace tessera::fake
