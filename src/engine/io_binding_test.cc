// Tests runs on memory of the caller: which memory is written, refused or copied.
#include "engine/io_binding.h"

#include <string>

#include "base/matchers_test.h"
#include "engine/shared_views_test.h"

namespace tessera {
namespace {

using testing_plugins::Dims;
using testing_plugins::kInPlace;
using testing_plugins::kOdd;
using testing_plugins::Needs;
using testing_plugins::SharedViews;

// More memory than the tensors need, so that tests can choose the addresses.
struct Memory {
  alignas(64) float elements[256] = {};

  Tensor at(size_t first, const Dims& dims) {
    return Tensor::over(DataType::Float32, dims, nullptr, elements + first);
  }
  std::vector<float> read(size_t first, size_t count) const {
    return {elements + first, elements + first + count};
  }
  void write(size_t first, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), elements + first);
  }
};

class IoBindings : public SharedViews {
 protected:
  // Builds a runner, whose inputs and results the tests bind.
  PlanRunner& runner(const Needs& needs, std::vector<StatePorts> pairs = {}) {
    BuiltPlan built = SharedViews::build(needs);
    runner_ = std::make_unique<PlanRunner>(
        std::move(built), RunnerOptions{.threads = 1, .state_pairs = std::move(pairs)});
    return *runner_;
  }
  void output(const std::string& name) { builder_.output(name); }
  // An input of four elements, a Relu to each following name, and the last name as the output.
  void chain(const std::vector<std::string>& names) {
    input(names[0], {4});
    relus(names);
    output(names.back());
  }
  // Binds the first inputs and results, which have four elements each, to these places in memory_.
  void bind(PlanRunner& runner, const Dims& inputs, const Dims& results) {
    for (size_t index = 0; index < inputs.size(); ++index) {
      runner.io_binding().bind_input(index, memory_.at(static_cast<size_t>(inputs[index]), {4}));
    }
    for (size_t index = 0; index < results.size(); ++index) {
      runner.io_binding().bind_result(index, memory_.at(static_cast<size_t>(results[index]), {4}));
    }
  }

  Memory memory_;
  std::unique_ptr<PlanRunner> runner_;
};

// For tests that need several instances.
class SingleIoBinding : public IoBindings {
 public:
  using IoBindings::bind;
  using IoBindings::chain;
  using IoBindings::memory_;
  using IoBindings::output;
  using IoBindings::relu;
  using IoBindings::runner;

 private:
  void TestBody() override {}
};

TEST_F(IoBindings, ReadAndWriteWhereTheyAreBound) {
  chain({"x", "y", "z"});
  PlanRunner& runner = this->runner({});
  bind(runner, {0}, {16});
  for (const float first : {1.0F, 10.0F}) {
    memory_.write(0, {first, 2, 3, 4});
    runner.run_bound();
    EXPECT_THAT(memory_.read(16, 4), ElementsAre(first + 2, 4, 5, 6));
  }
  // From now on, the result is written elsewhere; the old memory keeps its values.
  runner.io_binding().bind_result(0, memory_.at(32, {4}));
  memory_.write(0, {5, 6, 7, 8});
  runner.run_bound();
  EXPECT_THAT(memory_.read(32, 4), ElementsAre(7, 8, 9, 10));
  EXPECT_THAT(memory_.read(16, 4), ElementsAre(12, 4, 5, 6));
  EXPECT_THAT(memory_.read(0, 4), ElementsAre(5, 6, 7, 8));
}

TEST_F(IoBindings, MixWithWhatIsGivenForOneRun) {
  chain({"x", "y"});
  PlanRunner& runner = this->runner({});
  runner.io_binding().bind_result(0, memory_.at(16, {4}));
  const std::vector<Tensor> results = runner.run(inputs_);
  EXPECT_THAT(memory_.read(16, 4), ElementsAre(101, 102, 103, 104));
  EXPECT_EQ(results[0].data(), memory_.elements + 16);
  runner.io_binding().bind_input(0, memory_.at(0, {4}));
  runner.run_bound();
  EXPECT_THAT(memory_.read(16, 4), ElementsAre(1, 1, 1, 1));
  runner.run(inputs_);
  EXPECT_THAT(memory_.read(16, 4), ElementsAre(101, 102, 103, 104));
  runner.run_bound();
  EXPECT_THAT(memory_.read(16, 4), ElementsAre(1, 1, 1, 1));
  runner.io_binding().bind_result(0, {});
  const std::vector<Tensor> again = runner.run(std::vector{Tensor()});
  EXPECT_EQ(values(again[0]), (std::vector<float>{1, 1, 1, 1}));
  runner.run(inputs_);
  EXPECT_EQ(values(again[0]), (std::vector<float>{1, 1, 1, 1}));
}

TEST_F(IoBindings, WriteToMemoryOfResultsThatWereDropped) {
  input("x", {1 << 15});
  relu("x", "y");
  output("y");
  PlanRunner& runner = this->runner({});
  std::vector<Tensor> first = runner.run(inputs_);
  const void* const memory = first[0].data();
  const std::vector<float> expected = values(first[0]);
  EXPECT_TRUE(first[0].is_sole_owner());
  const std::vector<Tensor> second = runner.run(inputs_);
  EXPECT_NE(second[0].data(), memory);
  EXPECT_EQ(values(first[0]), expected);
  first.clear();
  const std::vector<Tensor> third = runner.run(inputs_);
  EXPECT_EQ(third[0].data(), memory);
  EXPECT_EQ(values(third[0]), expected);
}

TEST_F(IoBindings, TakeAnyAddressThatElementsCanHave) {
  chain({"x", "y"});
  for (const Needs& needs : {Needs{}, kOdd}) {
    PlanRunner& runner = this->runner(needs);
    memory_ = {};
    bind(runner, {1}, {19});
    for (const float first : {1.0F, 10.0F}) {
      memory_.write(1, {first, 2, 3, 4});
      runner.run_bound();
      EXPECT_THAT(memory_.read(18, 6), ElementsAre(0, first + 1, 3, 4, 5, 0));
    }
  }
}

TEST_F(IoBindings, NeverWriteToInputs) {
  chain({"x", "y", "z"});
  PlanRunner& runner = this->runner(kInPlace);
  const Tensor before = counted({4}, 100);
  runner.run(inputs_);
  EXPECT_EQ(values(inputs_[0]), values(before));
  memory_.write(0, {1, 2, 3, 4});
  bind(runner, {0}, {16});
  runner.run_bound();
  EXPECT_THAT(memory_.read(0, 4), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(memory_.read(16, 4), ElementsAre(3, 4, 5, 6));
}

TEST_F(IoBindings, CopyOutputsThatAreViewsOfInputs) {
  input("x", {4});
  reshape("x", "square", {2, 2});
  output("square");
  output("x");
  PlanRunner& runner = this->runner({});
  memory_.write(0, {1, 2, 3, 4});
  runner.io_binding().bind_input(0, memory_.at(0, {4}));
  runner.io_binding().bind_result(0, memory_.at(16, {2, 2}));
  runner.io_binding().bind_result(1, memory_.at(32, {4}));
  runner.run_bound();
  EXPECT_THAT(memory_.read(16, 4), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(memory_.read(32, 4), ElementsAre(1, 2, 3, 4));
  const std::vector<Tensor> results = runner.run(inputs_);
  EXPECT_THAT(memory_.read(16, 4), ElementsAre(100, 101, 102, 103));
}

TEST_F(IoBindings, CopyConstantsThatAreOutputs) {
  input("x", {4});
  builder_.constant("c", floats({2}, {7, 8}));
  relu("x", "y");
  output("y");
  output("c");
  PlanRunner& runner = this->runner({});
  runner.io_binding().bind_input(0, memory_.at(0, {4}));
  runner.io_binding().bind_result(0, memory_.at(16, {4}));
  runner.io_binding().bind_result(1, memory_.at(32, {2}));
  for (int run = 0; run < 2; ++run) {
    memory_.write(32, {0, 0});
    runner.run_bound();
    EXPECT_THAT(memory_.read(32, 2), ElementsAre(7, 8));
  }
}

TEST_F(IoBindings, GiveOneValueAsTwoOutputs) {
  chain({"x", "y"});
  output("y");
  PlanRunner& runner = this->runner({});
  memory_.write(0, {1, 2, 3, 4});
  runner.io_binding().bind_input(0, memory_.at(0, {4}));
  runner.io_binding().bind_result(1, memory_.at(16, {4}));
  const std::vector<Tensor> results = runner.run(std::vector{Tensor()});
  EXPECT_THAT(memory_.read(16, 4), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(values(results[0]), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_NE(results[0].data(), memory_.elements + 16);
  runner.io_binding().bind_result(0, memory_.at(32, {4}));
  memory_.write(0, {5, 6, 7, 8});
  runner.run_bound();
  EXPECT_THAT(memory_.read(16, 4), ElementsAre(6, 7, 8, 9));
  EXPECT_THAT(memory_.read(32, 4), ElementsAre(6, 7, 8, 9));
  EXPECT_EQ(values(results[0]), (std::vector<float>{2, 3, 4, 5}));
}

TEST_F(IoBindings, RefuseOutputsThatOverlap) {
  input("x", {4});
  relu("x", "y");
  relu("y", "z");
  output("y");
  output("z");
  PlanRunner& runner = this->runner({});
  bind(runner, {0}, {19, 16});
  const std::string output_text = error_of([&] { runner.run_bound(); });
  EXPECT_THAT(output_text, HasSubstr("InvalidArgument: output 'z'"));
  EXPECT_THAT(output_text, HasSubstr("overlaps output 'y'"));
  runner.io_binding().bind_result(0, memory_.at(32, {4}));
  runner.run_bound();
  EXPECT_THAT(memory_.read(16, 4), ElementsAre(2, 2, 2, 2));
}

TEST_F(IoBindings, WriteStateOverItsInputOnceAllHaveReadIt) {
  // y depends on x alone. If z reads x later, y must not be written over x directly.
  struct Case {
    std::string what;
    Needs needs;
    bool is_read_later;
  };
  for (const Case& made : {Case{"in place", kInPlace, false}, Case{"copied", {}, false},
                           Case{"still read", kInPlace, true}}) {
    SCOPED_TRACE(made.what);
    SingleIoBinding one;
    one.chain({"x", "y"});
    if (made.is_read_later) {
      one.relu("x", "again");
      one.relu("again", "z");
      one.output("z");
    }
    PlanRunner& runner = one.runner(made.needs, {{0, 0}});
    one.memory_.write(0, {1, 2, 3, 4});
    one.bind(runner, {0}, {0});
    if (made.is_read_later) runner.io_binding().bind_result(1, one.memory_.at(16, {4}));
    for (const float run : {1.0F, 2.0F, 3.0F}) {
      runner.run_bound();
      EXPECT_THAT(one.memory_.read(0, 4), ElementsAre(1 + run, 2 + run, 3 + run, 4 + run));
      if (made.is_read_later) {
        EXPECT_THAT(one.memory_.read(16, 4), ElementsAre(2 + run, 3 + run, 4 + run, 5 + run));
      }
    }
  }
}

TEST_F(IoBindings, AskForInPlaceOnlyWhereItIs) {
  chain({"x", "y"});
  PlanRunner& runner = this->runner(kInPlace, {{0, 0}});
  std::vector<int32_t> requests;
  const PlanWatcher watcher = [&](const PlanEvent& event) {
    requests.push_back(event.outputs[0].request);
  };
  bind(runner, {0}, {0});
  runner.run_bound(watcher);
  runner.io_binding().bind_result(0, memory_.at(16, {4}));
  runner.run_bound(watcher);
  runner.io_binding().bind_result(0, memory_.at(0, {4}));
  runner.run_bound(watcher);
  runner.io_binding().bind_result(0, {});
  runner.run(inputs_, watcher);
  EXPECT_THAT(requests, ElementsAre(TESSERA_REQUEST_IN_PLACE, TESSERA_REQUEST_WRITE,
                                    TESSERA_REQUEST_IN_PLACE, TESSERA_REQUEST_WRITE));
}

// Results are as if the inputs were copied before the run, whatever memory they share.
TEST_F(IoBindings, WriteOverInputsThatAreNoStates) {
  input("x", {4});
  relu("x", "y");
  relu("x", "again");
  relu("again", "z");
  output("y");
  output("z");
  for (const Needs& needs : {kInPlace, Needs{}}) {
    for (const int64_t y_at : {0, 1, 3, 4, 60}) {
      for (const int64_t z_at : {0, 2, 4, 40}) {
        if (std::abs(y_at - z_at) < 4) continue;
        SCOPED_TRACE(std::to_string(y_at) + " " + std::to_string(z_at));
        PlanRunner& runner = this->runner(needs);
        bind(runner, {0}, {y_at, z_at});
        memory_.write(0, {1, 2, 3, 4});
        runner.run_bound();
        EXPECT_THAT(memory_.read(y_at, 4), ElementsAre(2, 3, 4, 5));
        EXPECT_THAT(memory_.read(z_at, 4), ElementsAre(3, 4, 5, 6));
        // An input that is given for only one run.
        memory_.write(0, {1, 2, 3, 4});
        runner.run(std::vector{memory_.at(0, {4})});
        EXPECT_THAT(memory_.read(y_at, 4), ElementsAre(2, 3, 4, 5));
        EXPECT_THAT(memory_.read(z_at, 4), ElementsAre(3, 4, 5, 6));
      }
    }
  }
}

TEST_F(IoBindings, ReturnAnInputThatIsWrittenOver) {
  input("x", {4});
  relu("x", "y");
  output("x");
  output("y");
  PlanRunner& runner = this->runner({});
  memory_.write(0, {1, 2, 3, 4});
  runner.io_binding().bind_input(0, memory_.at(0, {4}));
  runner.io_binding().bind_result(1, memory_.at(0, {4}));
  const std::vector<Tensor> results = runner.run(std::vector{Tensor()});
  EXPECT_EQ(values(results[0]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_THAT(memory_.read(0, 4), ElementsAre(2, 3, 4, 5));
}

TEST_F(IoBindings, WriteStateThatOverlapsInPart) {
  chain({"x", "y"});
  PlanRunner& runner = this->runner(kInPlace, {{0, 0}});
  memory_.write(0, {1, 2, 3, 4});
  bind(runner, {0}, {2});
  runner.run_bound();
  EXPECT_THAT(memory_.read(0, 6), ElementsAre(1, 2, 2, 3, 4, 5));
  // Separate memory works too.
  memory_.write(0, {1, 2, 3, 4});
  runner.io_binding().bind_result(0, memory_.at(16, {4}));
  runner.run_bound();
  EXPECT_THAT(memory_.read(0, 4), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(memory_.read(16, 4), ElementsAre(2, 3, 4, 5));
}

TEST_F(IoBindings, WriteStateThatAnEarlierStepHasRead) {
  chain({"x", "a", "y"});
  PlanRunner& runner = this->runner({}, {{0, 0}});
  memory_.write(0, {1, 2, 3, 4});
  bind(runner, {0}, {0});
  runner.run_bound();
  runner.run_bound();
  EXPECT_THAT(memory_.read(0, 4), ElementsAre(5, 6, 7, 8));
}

TEST_F(IoBindings, SwapStatesThatAreEachOthersInputs) {
  input("a", {4});
  input("b", {4});
  output("b");
  output("a");
  PlanRunner& runner = this->runner({}, {{0, 0}, {1, 1}});
  memory_.write(0, {1, 2, 3, 4});
  memory_.write(16, {5, 6, 7, 8});
  bind(runner, {0, 16}, {0, 16});
  runner.run_bound();
  EXPECT_THAT(memory_.read(0, 4), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(memory_.read(16, 4), ElementsAre(1, 2, 3, 4));
}

TEST_F(IoBindings, AreWatchedToo) {
  chain({"x", "y", "z"});
  PlanRunner& runner = this->runner({});
  bind(runner, {0}, {16});
  std::vector<const void*> written;
  runner.run_bound([&](const PlanEvent& event) { written.push_back(event.outputs[0].data); });
  ASSERT_EQ(written.size(), 2U);
  EXPECT_EQ(written[1], memory_.elements + 16);
}

}  // namespace
}  // namespace tessera
