// The devices of the plug-in `opencl`: memory, queues, events, programs, and what happens after
// fork().
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/matchers_test.h"
#include "opencl_fixture.h"

namespace tessera::opencl {
namespace {

TEST_F(OpenclTest, LoadsProgramsThatAnEarlierHostKept) {
  const TestNode node = {"Cosh", 9, {random_tensor({10})}, {floats({10})}};
  const std::vector<float> first = run(node);
  const uint64_t built = TestPlugin::built_programs();
  EXPECT_GT(built, 0U);
  const TestPlugin second(blobs_);
  EXPECT_EQ(second.run_single(node)[0].elements<float>(), first);
  EXPECT_EQ(TestPlugin::built_programs(), built);
  for (auto& [key, bytes] : blobs_) {
    if (key.starts_with("program/")) bytes = "no binary";
  }
  const TestPlugin third(blobs_);
  EXPECT_EQ(third.run_single(node)[0].elements<float>(), first);
  EXPECT_GT(TestPlugin::built_programs(), built);
}

// A queue with two events, on one device.
struct TestQueue {
  explicit TestQueue(const tessera_device_interface& used) : device(used) {
    expect_ok(device.create_queue(device.self, &queue, &error), error);
    expect_ok(device.create_event(device.self, &begin, &error), error);
    expect_ok(device.create_event(device.self, &end, &error), error);
  }
  ~TestQueue() {
    device.release_event(device.self, begin);
    device.release_event(device.self, end);
    device.release_queue(device.self, queue);
  }
  TestQueue(const TestQueue&) = delete;
  TestQueue& operator=(const TestQueue&) = delete;

  const tessera_device_interface& device;
  tessera_error error = plugin::detail::empty_error();
  void* queue = nullptr;
  void* begin = nullptr;
  void* end = nullptr;
};

// Sends bytes through memory of the device to `through`, and on into memory of the queue's device,
// which waits for that by an event only.
void expect_order(TestQueue& first, TestQueue& second, const std::string& bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  const TestBuffer from(first.device, first.queue, std::string(bytes.size(), 'x'));
  const TestBuffer to(second.device, second.queue, std::string(bytes.size(), 'y'));
  std::string between(bytes.size(), ' ');
  tessera_error error = plugin::detail::empty_error();
  const tessera_device_interface& device = first.device;
  expect_ok(device.record_event(device.self, first.queue, first.begin, &error), error);
  expect_ok(
      device.copy_to_device(device.self, first.queue, bytes.data(), &from.position(), size, &error),
      error);
  expect_ok(
      device.copy_to_host(device.self, first.queue, &from.position(), between.data(), size, &error),
      error);
  expect_ok(device.record_event(device.self, first.queue, first.end, &error), error);
  const tessera_device_interface& other = second.device;
  expect_ok(other.wait_event(other.self, second.queue, first.end, &error), error);
  expect_ok(
      other.copy_to_device(other.self, second.queue, between.data(), &to.position(), size, &error),
      error);
  expect_ok(other.record_event(other.self, second.queue, second.end, &error), error);
  expect_ok(other.synchronise_event(other.self, second.end, &error), error);
  EXPECT_EQ(to.download(), bytes);
  double seconds = -1;
  expect_ok(device.elapsed_seconds(device.self, first.begin, first.end, &seconds, &error), error);
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 1);
}

TEST_F(OpenclTest, OrdersQueuesByEvents) {
  TestQueue first(plugin_->device());
  TestQueue second(plugin_->device());
  for (char round = 'a'; round <= 'z'; ++round) {
    expect_order(first, second, std::string(1 << 20, round));
  }
}

TEST_F(OpenclTest, OrdersQueuesOfTwoDevicesByEvents) {
  if (plugin_->backend().device_count < 2) GTEST_SKIP() << "there is one device only";
  TestQueue first(plugin_->device(0));
  TestQueue second(plugin_->device(1));
  for (char round = 'a'; round <= 'z'; ++round) {
    expect_order(first, second, std::string(1 << 20, round));
    expect_order(second, first, std::string(1 << 20, round));
  }
}

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGSEGV, SIGFPE, SIGUSR1};

std::vector<struct sigaction> signal_handlers() {
  std::vector<struct sigaction> handlers;
  for (const int number : kSignals) {
    EXPECT_EQ(sigaction(number, nullptr, &handlers.emplace_back()), 0);
  }
  return handlers;
}

// Before any plug-in is opened; a sanitizer has handlers of its own.
const std::vector<struct sigaction> kHandlersAtStart = signal_handlers();

TEST_F(OpenclTest, LeavesSignalsAlone) {
  // PoCL's LLVM installs handlers for most signals.
  const std::vector<struct sigaction> found = signal_handlers();
  for (size_t index = 0; index < found.size(); ++index) {
    EXPECT_TRUE(found[index].sa_handler == kHandlersAtStart[index].sa_handler) << kSignals[index];
  }
}

TEST_F(OpenclTest, RefusesTooMuchMemory) {
  const tessera_device_interface& device = plugin_->device();
  tessera_error error = plugin::detail::empty_error();
  void* handle = nullptr;
  EXPECT_EQ(device.allocate(device.self, int64_t{1} << 50, &handle, &error), TESSERA_OUT_OF_MEMORY);
  expect_ok(device.check_usable(device.self, &error), error);
}

TEST_F(OpenclTest, FailsInAChildOfFork) {
  const tessera_device_interface& device = plugin_->device();
  tessera_error error = plugin::detail::empty_error();
  void* handle = nullptr;
  expect_ok(device.allocate(device.self, 64, &handle, &error), error);
  const pid_t child = fork();
  if (child == 0) {
    void* other = nullptr;
    const int32_t status = device.allocate(device.self, 64, &other, &error);
    const bool is_refused = status == TESSERA_DEVICE_FAILED &&
                            std::string(error.message).find("fork") != std::string::npos &&
                            device.check_usable(device.self, &error) == TESSERA_DEVICE_FAILED;
    device.release_memory(device.self, handle);
    _exit(is_refused ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
  device.release_memory(device.self, handle);
}

TEST_F(OpenclTest, SelectsDevicesByNameOrNumber) {
  for (const char* selection : {"0", ""}) {
    setenv("TESSERA_OPENCL_DEVICE", selection, 1);
    EXPECT_GE(TestPlugin(blobs_).backend().device_count, 1);
  }
  setenv("TESSERA_OPENCL_DEVICE", "no such device", 1);
  try {
    const TestPlugin opened(blobs_);
    FAIL() << "expected a refusal";
  } catch (const NoDevice& reason) {
    EXPECT_THAT(reason.what(), HasSubstr("no such device"));
  }
  unsetenv("TESSERA_OPENCL_DEVICE");
}

TEST_F(OpenclTest, RunsOneKernelOnSeveralThreads) {
  std::vector<std::thread> threads;
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([seed] {
      const TestTensor a = random_tensor({20, 30}, seed);
      const TestTensor b = random_tensor({30, 10}, seed + 10);
      EXPECT_THAT(run({"MatMul", 13, {a, b}, {floats({20, 10})}}),
                  Pointwise(FloatNear(1e-4F), product(a.elements<float>().data(),
                                                      b.elements<float>().data(), 20, 10, 30)));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tessera::opencl
