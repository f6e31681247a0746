// Inputs and outputs in memory of a device: nothing crosses to the host, results are written where
// they are bound, and memory of another device is refused.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/device_memory/owned_storage.h"
#include "base/matchers_test.h"
#include "base/tensor/tensors_test.h"
#include "fake_plugin.h"

namespace tessera {
namespace {

template <class Call>
Error error_from(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::Internal, "", "nothing was thrown"};
}

class DeviceIo : public FakeDevices {
 protected:
  // x -> Neg, Abs, ... on the first device, with both ends in its memory.
  void build_chain(int length) {
    made_.emplace(chain(length));
    build_graph(Where::First, "fake", "fake");
  }

  // Builds `made_` with each step on `where`, and the first input and the first output on these
  // devices.
  void build_graph(Where where, const std::string& input, const std::string& output,
                   std::vector<StatePorts> pairs = {}) {
    graph_ = typed(*made_);
    graph_[graph_.inputs[0]].io_device = input;
    graph_[graph_.outputs[0]].io_device = output;
    inputs_ = inputs_of(graph_, *made_);
    BuiltPlan built = build(graph_, all_on(graph_, where), packs_);
    ASSERT_EQ(explain_violation(built.plan), "");
    ASSERT_EQ(explain_race(built.plan), "");
    runner_ = std::make_unique<PlanRunner>(
        std::move(built), RunnerOptions{.threads = 1, .state_pairs = std::move(pairs)});
    fake_.reset();
  }

  Tensor on(const std::string& device, const Tensor& tensor) const {
    return on_device(runner_->built(), device, tensor);
  }
  void TearDown() override { EXPECT_EQ(fake_.violations(), ""); }

  std::optional<RandomGraph> made_;
  Graph graph_;
  std::vector<Tensor> inputs_;
  PackStore packs_;
  std::unique_ptr<PlanRunner> runner_;
};

TEST_F(DeviceIo, NothingIsCopiedToTheHost) {
  build_chain(5);
  const std::vector<Tensor> given = placed(runner_->built(), inputs_);
  fake_.reset();
  const std::vector<Tensor> found = runner_->run(given);
  const fake_counters counters = fake_.counters(0);
  EXPECT_EQ(counters.kernels, 5);
  EXPECT_EQ(counters.bytes_to_device, 0);
  EXPECT_EQ(counters.bytes_to_host, 0);
  EXPECT_EQ(counters.bytes_within, 0);
  EXPECT_EQ(counters.synchronisations, 1);
  ASSERT_EQ(found[0].device(), "fake");
  expect_equal(expected(graph_, inputs_), found, "chain");
  // A result is an input of the next run.
  expect_equal(expected(graph_, {found[0].to_host()}), runner_->run(found), "second run");
}

TEST_F(DeviceIo, ResultsAreKeptByLaterRuns) {
  build_chain(3);
  const std::vector<Tensor> first = runner_->run(placed(runner_->built(), inputs_));
  const std::vector<Tensor> other = {floats({2, 3}, {1, 2, 3, 4, 5, 6})};
  runner_->run(placed(runner_->built(), other));
  expect_equal(expected(graph_, inputs_), first, "the first results");
}

TEST_F(DeviceIo, BoundMemoryIsReadAndWrittenDirectly) {
  build_chain(4);
  const Tensor input = on("fake", inputs_[0]);
  const Tensor output = on("fake", inputs_[0]);
  runner_->io_binding().bind_input(0, input);
  runner_->io_binding().bind_result(0, output);
  runner_->run_bound();
  fake_.reset();
  runner_->run_bound();
  const fake_counters counters = fake_.counters(0);
  EXPECT_EQ(counters.copies_within + counters.copies_to_host + counters.copies_to_device, 0);
  expect_equal(expected(graph_, inputs_), {output}, "bound output");
}

TEST_F(DeviceIo, AnOffsetInALargerBlockIsAPlace) {
  build_chain(2);
  const Tensor block = on("fake", floats({128}, std::vector<float>(128, 7.0F)));
  const auto part = [&](int64_t offset) {
    return tensor_over(runner_->built().layouts->device({1}), DataType::Float32, {2, 3},
                       std::make_shared<Tensor>(block), block.device_storage()->handle(), offset);
  };
  part(0).device_storage()->copy_from_host(0, inputs_[0].data(), inputs_[0].bytes());
  runner_->io_binding().bind_result(0, part(256));
  runner_->run({{part(0)}});
  expect_equal(expected(graph_, inputs_), {part(256)}, "at an offset");
  EXPECT_FLOAT_EQ(block.to_host().as<float>()[10], 7);
  const Error odd = error_from([&] { runner_->run({{part(4)}}); });
  EXPECT_EQ(odd.kind(), ErrorKind::InvalidArgument);
  EXPECT_THAT(odd.message(), HasSubstr("multiple of 256 bytes, found 4"));
}

TEST_F(DeviceIo, StateOfADeviceIsWrittenOverItsInput) {
  made_.emplace(chain(3));
  build_graph(Where::First, "fake", "fake", {{.input = 0, .result = 0}});
  const Tensor state = on("fake", inputs_[0]);
  runner_->io_binding().bind_input(0, state);
  runner_->io_binding().bind_result(0, state);
  std::vector<Tensor> wanted = inputs_;
  for (int run = 0; run < 5; ++run) {
    runner_->run_bound();
    wanted = expected(graph_, wanted);
    expect_equal(wanted, {state}, "run " + std::to_string(run));
  }
  EXPECT_EQ(fake_.counters(0).copies_within, 0);
}

// The input is read after the result was made, so the result waits elsewhere.
TEST_F(DeviceIo, StateThatIsReadLateIsCopied) {
  made_.emplace(registry_, 17);
  Dice dice(3);
  made_->input("x", dice.tensor({2, 3}));
  made_->builder.node("first", "Neg", {"x"}, {"y"});
  made_->builder.node("second", "Abs", {"y"}, {"a"});
  made_->builder.node("third", "Add", {"a", "x"}, {"b"});
  made_->builder.output("y").output("b");
  build_graph(Where::First, "fake", "fake", {{.input = 0, .result = 0}});
  const Tensor state = on("fake", inputs_[0]);
  runner_->io_binding().bind_input(0, state);
  runner_->io_binding().bind_result(0, state);
  std::vector<Tensor> wanted = inputs_;
  for (int run = 0; run < 3; ++run) {
    fake_.reset();
    const std::vector<Tensor> found = runner_->run({{Tensor()}});
    EXPECT_EQ(fake_.counters(0).synchronisations, 1) << "the copy is part of the bulk";
    wanted = expected(graph_, {wanted[0]});
    expect_equal(wanted, found, "run " + std::to_string(run));
    expect_equal({wanted[0]}, {state}, "state after run " + std::to_string(run));
  }
}

TEST_F(DeviceIo, OutputsThatNoStepMakesAreOnTheDeviceToo) {
  made_.emplace(registry_, 17);
  Dice dice(4);
  made_->input("x", dice.tensor({4}));
  made_->constant("c", dice.tensor({5}));
  made_->builder.node("negative", "Neg", {"x"}, {"y"});
  made_->builder.output("c").output("x").output("y").output("y");
  build_graph(Where::Host, "fake", "fake");
  const std::vector<Tensor> found = runner_->run(placed(runner_->built(), inputs_));
  ASSERT_EQ(found.size(), 4);
  EXPECT_EQ(found[0].device(), "fake");
  EXPECT_EQ(found[1].device(), "fake");
  EXPECT_EQ(found[2].device(), "cpu");
  expect_equal(expected(graph_, inputs_), found, "constant, input, value, value again");
  const Tensor bound = on("fake", inputs_[0]);
  runner_->io_binding().bind_result(1, bound);
  const std::vector<Tensor> other = {floats({4}, {4, 3, 2, 1})};
  runner_->run(placed(runner_->built(), other));
  expect_equal(other, {bound}, "an input as a bound output");
}

TEST_F(DeviceIo, MemoryOfAnotherDeviceIsRefused) {
  build_chain(2);
  const Error host = error_from([&] { runner_->run(inputs_); });
  EXPECT_EQ(host.kind(), ErrorKind::InvalidArgument);
  EXPECT_EQ(host.where(), "input 'x'");
  EXPECT_THAT(host.message(), HasSubstr("in memory of device 'fake', as node 'n0' (Neg) does"));
  EXPECT_THAT(host.message(), HasSubstr("found one in the host's memory"));
  const Error other = error_from([&] { runner_->run({{on("fake:1", inputs_[0])}}); });
  EXPECT_THAT(other.message(), HasSubstr("found one in memory of device 'fake:1'"));
  const Error output =
      error_from([&] { runner_->io_binding().bind_result(0, Tensor(DataType::Float32, {2, 3})); });
  EXPECT_EQ(output.where(), "output 'v1'");
  EXPECT_THAT(output.message(), HasSubstr("as node 'n1' (Abs) does"));
  expect_equal(expected(graph_, inputs_), runner_->run(placed(runner_->built(), inputs_)),
               "after the errors");
}

TEST_F(DeviceIo, ResultsMayBeWrittenOverInputs) {
  for (const int length : {1, 2, 5}) {
    build_chain(length);
    const Tensor memory = on("fake", inputs_[0]);
    runner_->io_binding().bind_input(0, memory);
    runner_->io_binding().bind_result(0, memory);
    runner_->run_bound();
    const std::vector<Tensor> once = expected(graph_, inputs_);
    expect_equal(once, {memory}, "over its input");
    runner_->run_bound();
    expect_equal(expected(graph_, once), {memory}, "over its input again");
  }
}

TEST_F(DeviceIo, HostMemoryInAPlanWithDevicesIsCheckedToo) {
  made_.emplace(chain(2));
  build_graph(Where::First, "", "");
  const Error error = error_from([&] { runner_->run({{on("fake", inputs_[0])}}); });
  EXPECT_THAT(error.message(), HasSubstr("bind with the layout 'row_major@fake'"));
}

TEST_F(DeviceIo, AFailedCopyNamesTheDevice) {
  build_chain(1);
  const std::vector<Tensor> found = runner_->run(placed(runner_->built(), inputs_));
  fake_.configure("fail_at=1,fail_mode=" + std::to_string(int{FAKE_IS_LOST}));
  const Error error = error_from([&] { found[0].to_host(); });
  EXPECT_EQ(error.kind(), ErrorKind::DeviceFailed);
  EXPECT_EQ(error.where(), "device 'fake'");
  fake_.configure("");
}

TEST_F(DeviceIo, ElementsOfADeviceHaveNoAddress) {
  build_chain(1);
  const Tensor tensor = on("fake", inputs_[0]);
  const Error error = error_from([&] { tensor.data(); });
  EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("memory of device 'fake'; to_host() copies them"));
  EXPECT_THROW(tensor.as<float>(), Error);
  EXPECT_THROW(Tensor::on_device(
                   DataType::Float32, {1000},
                   std::shared_ptr<DeviceStorage>(tensor.device_storage(), [](DeviceStorage*) {})),
               Error);
}

}  // namespace
}  // namespace tessera
