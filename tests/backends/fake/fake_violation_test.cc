// Each violation that a fake device finds, once, beside a correct form of the same calls. Most of
// these hosts leave out one wait. The result may still be right by luck; the report does not depend
// on luck.
#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

#include "fake_test.h"

namespace tessera::fake {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBytes = 1024;
// One operation at a time, because the thread sanitizer would find some of these races too.
constexpr const char* kViolationSettings = "devices=2,one_at_a_time=1";

class FakeViolationTest : public FakeTest {
 protected:
  // Two devices with a queue each, and a second queue on the first device.
  void SetUp() override {
    open(kViolationSettings);
    queue_ = first().create_queue();
    other_ = first().create_queue();
    peer_queue_ = second().create_queue();
    memory_ = first().allocate(kBytes);
    peer_memory_ = second().allocate(kBytes);
    event_ = first().create_event();
  }

  void TearDown() override {
    for (void* queue : {queue_, other_}) first().synchronise(queue);
    second().synchronise(peer_queue_);
    for (void* queue : {queue_, other_}) first().release_queue(queue);
    second().release_queue(peer_queue_);
    first().release(memory_);
    second().release(peer_memory_);
    first().release_event(event_);
    FakeTest::TearDown();
  }

  TestedDevice first() const { return device(0); }
  TestedDevice second() const { return device(1); }

  // The first queue writes the memory; `is_ordered`: the caller's next operation in `queue` waits.
  void write_then_order(void* queue, bool is_ordered) {
    first().write(queue_, from_, memory_);
    first().record(queue_, event_);
    if (is_ordered) (queue == peer_queue_ ? second() : first()).wait(queue, event_);
  }

  void* queue_ = nullptr;
  void* other_ = nullptr;
  void* peer_queue_ = nullptr;
  void* memory_ = nullptr;
  void* peer_memory_ = nullptr;
  void* event_ = nullptr;
  std::vector<uint8_t> from_ = std::vector<uint8_t>(256, 7);
  std::vector<uint8_t> to_ = std::vector<uint8_t>(256, 0);
};

TEST_F(FakeViolationTest, a_read_in_another_queue_without_a_wait) {
  write_then_order(other_, true);
  first().read(other_, memory_, to_);
  EXPECT_EQ(take_violations(), "");
  first().synchronise(other_);
  EXPECT_EQ(to_, from_);

  write_then_order(other_, false);
  first().read(other_, memory_, to_);
  EXPECT_EQ(take_violations(),
            "race: copy_to_host on fake reads memory 1 of fake[0,256), and nothing orders this "
            "after copy_to_device on fake, which wrote [0,256)\n");
}

TEST_F(FakeViolationTest, a_read_by_another_device_without_a_wait) {
  write_then_order(peer_queue_, true);
  second().copy_from_peer(peer_queue_, first(), memory_, peer_memory_, 256);
  EXPECT_EQ(take_violations(), "");
  second().synchronise(peer_queue_);
  write_then_order(peer_queue_, false);
  second().copy_from_peer(peer_queue_, first(), memory_, peer_memory_, 256);
  EXPECT_THAT(take_violations(), HasSubstr("race: copy_from_peer on fake:1 reads"));
}

TEST_F(FakeViolationTest, a_write_over_what_another_queue_reads) {
  write_then_order(other_, true);
  first().read(other_, memory_, to_);
  first().write(queue_, from_, memory_, 256);  // other bytes
  EXPECT_EQ(take_violations(), "");
  first().write(queue_, from_, memory_);
  EXPECT_THAT(take_violations(), HasSubstr("race: copy_to_device on fake writes memory"));
}

TEST_F(FakeViolationTest, a_wait_orders_only_what_was_enqueued_before_the_event) {
  first().record(queue_, event_);
  first().write(queue_, from_, memory_);
  first().wait(other_, event_);
  first().read(other_, memory_, to_);
  EXPECT_THAT(take_violations(), HasSubstr("race"));
}

TEST_F(FakeViolationTest, the_host_orders_queues_by_synchronising) {
  first().write(queue_, from_, memory_);
  first().synchronise(queue_);
  first().read(other_, memory_, to_);
  EXPECT_EQ(take_violations(), "");
}

TEST_F(FakeViolationTest, memory_of_the_host_is_used_without_a_wait) {
  first().write(queue_, from_, memory_);
  first().read(queue_, memory_, to_);
  fake_note_host_access(from_.data(), 256, 0);
  EXPECT_EQ(take_violations(), "");
  fake_note_host_access(to_.data(), 1, 0);
  EXPECT_THAT(take_violations(), HasSubstr("race: the host reads the host's memory"));
  fake_note_host_access(from_.data(), 1, 1);
  EXPECT_THAT(take_violations(), HasSubstr("race: the host writes the host's memory"));
  // A copy through the host's memory needs a wait too.
  second().write(peer_queue_, to_, peer_memory_);
  EXPECT_THAT(take_violations(), HasSubstr("race: copy_to_device on fake:1 reads the host's"));
  first().synchronise(queue_);
  fake_note_host_access(to_.data(), 256, 0);
  EXPECT_EQ(take_violations(), "");
  EXPECT_EQ(to_, from_);
}

TEST_F(FakeViolationTest, separate_threads_know_only_what_they_waited_for) {
  for (const bool are_separate : {false, true}) {
    ASSERT_EQ(fake_configure_text(are_separate ? "one_at_a_time=1,separate_threads=1"
                                               : kViolationSettings),
              0);
    first().write(queue_, from_, memory_);
    std::jthread([&] { first().synchronise(queue_); }).join();
    first().read(other_, memory_, to_);
    EXPECT_EQ(take_violations().empty(), !are_separate);
    first().synchronise(queue_);
    first().synchronise(other_);
  }
}

TEST_F(FakeViolationTest, memory_that_work_uses_is_released) {
  void* memory = first().allocate(kBytes);
  first().write(queue_, from_, memory);
  first().release(memory);
  EXPECT_THAT(take_violations(), HasSubstr("is not known to be done"));
  first().release(memory);
  EXPECT_THAT(take_violations(), HasSubstr("was released twice"));
  first().release(static_cast<void*>(&memory));
  EXPECT_THAT(take_violations(), HasSubstr("never returned"));
}

TEST_F(FakeViolationTest, positions_outside_of_their_memory) {
  struct Case {
    void* handle;
    int64_t offset;
    const char* reason;
  };
  void* released = first().allocate(kBytes);
  first().release(released);
  const Case cases[] = {{memory_, 1024, "uses [1024,1280) of memory 1 of fake, which has 1024"},
                        {memory_, -256, "uses [-256,0)"},
                        {peer_memory_, 0, "uses memory 1 of fake:1"},
                        {released, 0, "which was released"},
                        {from_.data(), 0, "never returned"}};
  for (const Case& wrong : cases) {
    const tessera_device_position to{wrong.handle, wrong.offset};
    EXPECT_EQ(first().abi().copy_to_device(first().self(), queue_, from_.data(), &to, 256,
                                           first().error()),
              TESSERA_INVALID_ARGUMENT);
    EXPECT_THAT(take_violations(), HasSubstr(wrong.reason));
  }
  first().write(queue_, from_, memory_, 64);
  EXPECT_THAT(take_violations(), HasSubstr("uses offset 64 of memory 1 of fake, which is no"));
}

TEST_F(FakeViolationTest, a_copy_onto_itself) {
  const tessera_device_position from{memory_, 0};
  const tessera_device_position to{memory_, 256};
  EXPECT_EQ(first().abi().copy(first().self(), queue_, &from, &to, 257, first().error()),
            TESSERA_INVALID_ARGUMENT);
  EXPECT_THAT(take_violations(), HasSubstr("which overlaps its range [0,257)"));
}

TEST_F(FakeViolationTest, a_queue_with_work_is_released) {
  void* queue = first().create_queue();
  first().write(queue, from_, memory_);
  first().release_queue(queue);
  EXPECT_THAT(take_violations(), HasSubstr("whose work is not known to be done"));
  EXPECT_EQ(first().abi().synchronise_queue(first().self(), queue, first().error()),
            TESSERA_INVALID_ARGUMENT);
  EXPECT_THAT(take_violations(), HasSubstr("uses a queue that does not exist"));
}

TEST_F(FakeViolationTest, events_that_were_not_recorded_or_are_not_complete) {
  EXPECT_NE(first().abi().wait_event(first().self(), queue_, event_, first().error()), TESSERA_OK);
  EXPECT_THAT(take_violations(), HasSubstr("never recorded"));
  EXPECT_NE(first().abi().synchronise_event(first().self(), event_, first().error()), TESSERA_OK);
  EXPECT_THAT(take_violations(), HasSubstr("never recorded"));
  first().record(queue_, event_);
  double seconds = 0;
  first().abi().elapsed_seconds(first().self(), event_, event_, &seconds, first().error());
  EXPECT_THAT(take_violations(), HasSubstr("elapsed_seconds on fake got an event that is not"));
  first().record(queue_, event_);
  EXPECT_THAT(take_violations(), HasSubstr("not known to be complete"));
}

TEST_F(FakeViolationTest, a_device_is_closed_with_what_it_gave_out) {
  first().write(queue_, from_, memory_);
  close();
  EXPECT_THAT(take_violations(), HasSubstr("device fake was closed with 2 queues, 1 events and 1 "
                                           "allocations that were not released"));
  EXPECT_EQ(counters().live_bytes, 0);
  SetUp();
}

TEST_F(FakeViolationTest, without_detection_races_are_not_reported) {
  ASSERT_EQ(fake_configure_text("one_at_a_time=1,detects=0"), 0);
  write_then_order(other_, false);
  first().read(other_, memory_, to_);
  EXPECT_EQ(take_violations(), "");
}

}  // namespace
}  // namespace tessera::fake
