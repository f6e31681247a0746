// The behaviour of a fake device for a host that makes no mistake.
#include "fake_device.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cfenv>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "fake_kernels.h"
#include "fake_test.h"

namespace tessera::fake {
namespace {

std::vector<float> numbers(size_t count, float first = 1) {
  std::vector<float> made(count);
  std::iota(made.begin(), made.end(), first);
  return made;
}

int64_t bytes_of(const std::vector<float>& elements) {
  return static_cast<int64_t>(elements.size() * sizeof(float));
}

// A kernel of the host that negates float32 elements.
ReferenceKernel negation() {
  auto kernel = std::make_shared<tessera_kernel>();
  *kernel = {};
  kernel->run = [](void*, tessera_run_context* context, const tessera_buffer* inputs,
                   const tessera_buffer* outputs, tessera_error*) {
    EXPECT_EQ(context->host_state, nullptr);
    EXPECT_EQ(inputs[0].rank, 2);
    struct Call {
      const float* from;
      float* to;
    } call{static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data)};
    context->parallel_for(
        context, inputs[0].dims[0] * inputs[0].dims[1], 1,
        [](void* argument, int64_t begin, int64_t end) {
          const Call& made = *static_cast<Call*>(argument);
          for (int64_t index = begin; index < end; ++index) made.to[index] = -made.from[index];
        },
        &call);
    return int32_t{TESSERA_OK};
  };
  return {kernel, {0}, {0}, "kernel Neg 'n'"};
}

// Runs a kernel on float32 matrices of 2 columns, with arguments that die with the call.
void run(plugin::Kernel& kernel, void* queue, tessera_device_position from,
         tessera_device_position to, int64_t bytes, int32_t request = TESSERA_REQUEST_WRITE) {
  int64_t dims[] = {bytes / 8, 2};
  plugin::Buffer input{{&from, bytes, TESSERA_FLOAT32, 2, dims, nullptr, 0, 2}};
  plugin::Buffer output{{&to, bytes, TESSERA_FLOAT32, 2, dims, nullptr, request, 2}};
  tessera_run_context abi = {};
  abi.struct_size = sizeof(abi);
  abi.queue = queue;
  plugin::RunContext context(&abi);
  kernel.run(context, {&input, 1}, {&output, 1});
  from = to = {};
  dims[0] = dims[1] = -1;
}

class FakeDeviceTest : public FakeTest {
 protected:
  std::shared_ptr<FakeDevice> interface(int32_t ordinal = 0) const {
    auto* base = static_cast<plugin::DeviceInterface*>(device(ordinal).self());
    return {dynamic_cast<FakeDevice*>(base), [](FakeDevice*) {}};
  }
};

TEST_F(FakeDeviceTest, describes_its_devices) {
  open("devices=2,memory_bytes=4096");
  ASSERT_EQ(backend().device_count, 3);
  EXPECT_STREQ(backend().devices[0].kind, "cpu");
  EXPECT_EQ(backend().device_interfaces[0], nullptr);
  EXPECT_STREQ(backend().devices[2].kind, "fake");
  EXPECT_EQ(backend().devices[2].ordinal, 1);
  EXPECT_EQ(device(1).abi().memory_bytes, 4096);
  EXPECT_EQ(device(1).abi().alignment_bytes, 256);
  EXPECT_EQ(backend().layout_count, 2);
}

TEST_F(FakeDeviceTest, copies_there_and_back) {
  open("delay_us=100");
  const TestedDevice fake = device();
  void* queue = fake.create_queue();
  void* memory = fake.allocate(8192);
  const std::vector<float> from = numbers(100);
  std::vector<float> to(100);
  fake.write(queue, from, memory, 256);
  fake.copy(queue, {memory, 256}, {memory, 4096}, bytes_of(from));
  fake.read(queue, memory, to, 4096);
  fake.synchronise(queue);
  EXPECT_EQ(to, from);
  const fake_counters counted = counters(0);
  EXPECT_EQ(counted.copies_to_device, 1);
  EXPECT_EQ(counted.bytes_to_host, 400);
  EXPECT_EQ(counted.bytes_within, 400);
  EXPECT_EQ(counted.synchronisations, 1);
  EXPECT_EQ(counted.live_bytes, 8192);
  EXPECT_EQ(counted.calls, 6);
  fake.release(memory);
  fake.release_queue(queue);
  EXPECT_EQ(counters().peak_bytes, 8192);
}

TEST_F(FakeDeviceTest, new_memory_is_not_zero) {
  open("");
  const TestedDevice fake = device();
  void* queue = fake.create_queue();
  void* memory = fake.allocate(100);
  std::vector<uint8_t> to(100);
  fake.read(queue, memory, to);
  fake.synchronise(queue);
  EXPECT_EQ(to, std::vector<uint8_t>(100, 0xA5));
  fake.release(memory);
  fake.release_queue(queue);
}

TEST_F(FakeDeviceTest, the_host_cannot_touch_its_memory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  open("");
  void* memory = device().allocate(100);
  EXPECT_DEATH(*static_cast<volatile char*>(memory) = 1, "");
  EXPECT_DEATH(static_cast<void>(*static_cast<volatile char*>(memory)), "");
  device().release(memory);
}

TEST_F(FakeDeviceTest, kernels_are_enqueued_with_copies_of_their_arguments) {
  open("delay_us=200,kernel_ns=1000000");
  const TestedDevice fake = device();
  const std::unique_ptr<plugin::Kernel> kernel = device_kernel(negation(), interface());
  void* queue = fake.create_queue();
  void* memory = fake.allocate(1024);
  const std::vector<float> from = numbers(16);
  std::vector<float> to(16);
  const auto begin = std::chrono::steady_clock::now();
  fake.write(queue, from, memory);
  run(*kernel, queue, {memory, 0}, {memory, 256}, 64);
  run(*kernel, queue, {memory, 256}, {memory, 256}, 64, TESSERA_REQUEST_IN_PLACE);
  run(*kernel, queue, {memory, 256}, {memory, 512}, 64);
  fake.read(queue, memory, to, 512);
  fake.synchronise(queue);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(3));
  EXPECT_EQ(to, (std::vector<float>{-1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14,
                                    -15, -16}));
  EXPECT_EQ(counters().kernels, 3);
  fake.release(memory);
  fake.release_queue(queue);
}

TEST_F(FakeDeviceTest, kernels_compute_with_the_rules_of_the_thread_that_enqueued_them) {
  open("");
  const TestedDevice fake = device();
  auto rounding = std::make_shared<tessera_kernel>();
  rounding->run = [](void*, tessera_run_context*, const tessera_buffer*,
                     const tessera_buffer* outputs, tessera_error*) {
    *static_cast<float*>(outputs[0].data) = static_cast<float>(std::fegetround());
    return int32_t{TESSERA_OK};
  };
  const auto kernel = device_kernel({rounding, {0}, {0}, "kernel"}, interface());
  void* queue = fake.create_queue();
  void* memory = fake.allocate(1024);
  const std::vector<float> from = numbers(2);
  fake.write(queue, from, memory);
  std::vector<float> to(2);
  for (const int mode : {FE_UPWARD, FE_TONEAREST}) {
    std::fesetround(mode);
    run(*kernel, queue, {memory, 0}, {memory, 256}, 8);
    std::fesetround(FE_TONEAREST);
    fake.read(queue, memory, to, 256);
    fake.synchronise(queue);
    EXPECT_EQ(to[0], static_cast<float>(mode));
  }
  fake.release(memory);
  fake.release_queue(queue);
}

TEST_F(FakeDeviceTest, converts_its_layout_on_the_device) {
  open("delay_us=50");
  const TestedDevice fake = device();
  void* queue = fake.create_queue();
  void* memory = fake.allocate(1024);
  const std::vector<float> from = numbers(6);
  std::vector<float> to(6);
  std::vector<float> back(6);
  const int64_t dims[] = {2, 3};
  tessera_device_position positions[] = {{memory, 0}, {memory, 256}, {memory, 512}};
  tessera_buffer buffers[3];
  for (int index = 0; index < 3; ++index) {
    buffers[index] = {&positions[index], 24, TESSERA_FLOAT32, 2, dims, nullptr, 1, 2};
  }
  tessera_run_context context = {};
  context.queue = queue;
  const tessera_layout& layout = backend().layouts[0];
  EXPECT_STREQ(layout.name, "fake:reversed");
  fake.write(queue, from, memory);
  EXPECT_EQ(layout.from_default(layout.self, &context, &buffers[0], &buffers[1], fake.error()), 0);
  EXPECT_EQ(layout.to_default(layout.self, &context, &buffers[1], &buffers[2], fake.error()), 0);
  fake.read(queue, memory, to, 256);
  fake.read(queue, memory, back, 512);
  fake.synchronise(queue);
  EXPECT_EQ(to, (std::vector<float>{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(back, from);
  EXPECT_EQ(counters().conversions, 2);
  fake.release(memory);
  fake.release_queue(queue);
}

// A value goes from device 0 to device 1 and back, many times.
TEST_F(FakeDeviceTest, events_order_queues_of_two_devices) {
  open("devices=2,delay_us=100,seed=7");
  const TestedDevice first = device(0);
  const TestedDevice second = device(1);
  void* queues[] = {first.create_queue(), second.create_queue()};
  void* memory[] = {first.allocate(512), second.allocate(512)};
  const std::vector<float> from = numbers(128);
  std::vector<float> to(128);
  std::vector<void*> events;
  first.write(queues[0], from, memory[0]);
  for (int round = 0; round < 20; ++round) {
    events.push_back(first.create_event());
    first.record(queues[0], events.back());
    second.wait(queues[1], events.back());
    second.copy_from_peer(queues[1], first, memory[0], memory[1], 512);
    events.push_back(second.create_event());
    second.record(queues[1], events.back());
    first.wait(queues[0], events.back());
    first.copy_from_peer(queues[0], second, memory[1], memory[0], 512);
  }
  first.read(queues[0], memory[0], to);
  first.record(queues[0], events[0]);
  EXPECT_NE(take_violations(), "");  // no queue has waited for event 0
  first.synchronise_event(events[0]);
  EXPECT_EQ(to, from);
  for (size_t index = 0; index < events.size(); ++index) {
    (index % 2 == 0 ? first : second).release_event(events[index]);
  }
  first.release(memory[0]);
  second.release(memory[1]);
  first.release_queue(queues[0]);
  second.release_queue(queues[1]);
}

TEST_F(FakeDeviceTest, tells_the_time_between_events) {
  open("copy_ns=2000000,copy_bytes_per_us=1");
  const TestedDevice fake = device();
  void* queue = fake.create_queue();
  void* memory = fake.allocate(1000);
  void* begin = fake.create_event();
  void* end = fake.create_event();
  const std::vector<uint8_t> from(1000);
  fake.record(queue, begin);
  fake.write(queue, from, memory);
  fake.record(queue, end);
  fake.synchronise_event(end);
  double seconds = 0;
  EXPECT_EQ(fake.abi().elapsed_seconds(fake.self(), begin, end, &seconds, fake.error()), 0);
  EXPECT_GE(seconds, 0.003);
  EXPECT_LT(seconds, 1);
  fake.release_event(begin);
  fake.release_event(end);
  fake.release(memory);
  fake.release_queue(queue);
}

TEST_F(FakeDeviceTest, many_threads_use_one_device) {
  open("delay_us=20");
  const TestedDevice fake = device();
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&fake, thread] {
      void* queue = fake.create_queue();
      for (int round = 0; round < 20; ++round) {
        const std::vector<float> from = numbers(64, static_cast<float>(thread * 1000 + round));
        std::vector<float> to(64);
        void* memory = fake.allocate(256);
        fake.write(queue, from, memory);
        fake.read(queue, memory, to);
        fake.synchronise(queue);
        EXPECT_EQ(to, from);
        fake.release(memory);
      }
      fake.release_queue(queue);
    });
  }
}

TEST_F(FakeDeviceTest, a_peer_copy_can_be_missing_or_refused) {
  open("devices=2,peer=0");
  EXPECT_EQ(device().abi().copy_from_peer, nullptr);
  open("devices=2,peer=2");
  const TestedDevice fake = device();
  const tessera_device_position nowhere = {};
  EXPECT_EQ(fake.abi().copy_from_peer(fake.self(), nullptr, &device(1).abi(), &nowhere, &nowhere, 1,
                                      fake.error()),
            TESSERA_UNSUPPORTED);
}

TEST_F(FakeDeviceTest, after_a_fork_the_child_gets_an_error) {
  open("delay_us=1000");
  const TestedDevice fake = device();
  void* queue = fake.create_queue();
  void* memory = fake.allocate(256);
  const std::vector<float> from = numbers(64);
  fake.write(queue, from, memory);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const bool failed =
        fake.abi().synchronise_queue(fake.self(), queue, fake.error()) == TESSERA_DEVICE_FAILED &&
        fake.message() == "device 'fake' was opened before fork" &&
        fake.abi().check_usable(fake.self(), fake.error()) == TESSERA_DEVICE_FAILED;
    fake.release(memory);
    fake.release_queue(queue);
    close();
#if !defined(TESSERA_SANITIZED) && !defined(__SANITIZE_THREAD__)
    // A device that is opened after the fork works. The thread sanitizer allows no threads there.
    open("");
    void* own = device().create_queue();
    device().synchronise(own);
    device().release_queue(own);
    close();
#endif
    ::_exit(failed && !HasFailure() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  fake.synchronise(queue);
  fake.release(memory);
  fake.release_queue(queue);
}

TEST_F(FakeDeviceTest, settings_that_it_does_not_know_are_refused) {
  fake_settings before;
  fake_get_settings(&before);
  for (const char* text : {"device=1", "devices=0", "devices=3", "delay_us", "peer=x", "seed=-1"}) {
    EXPECT_EQ(fake_configure_text(text), -1) << text;
  }
  fake_settings after;
  fake_get_settings(&after);
  EXPECT_EQ(after.seed, before.seed);
}

}  // namespace
}  // namespace tessera::fake
