#include "tessera/pool.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <latch>
#include <thread>

#include "base/errors/error_test.h"
#include "base/tensor/tensors_test.h"
#include "base/threads/background_task.h"
#include "base/threads/threads_test.h"
#include "import/onnx/test_models.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kDepth = 24;
constexpr int64_t kWidth = 40;

// y = Softmax(x * w), in which x has an unknown number of rows.
Model make_model() {
  onnx::ModelProto model = onnx_import::make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx_import::add_input(graph, "x", {1, kDepth});
  onnx_import::name_dimension(graph, 0, 0, "rows");
  onnx_import::add_weight(graph, "w", {kDepth, kWidth}, 0.125F);
  onnx_import::add_node(graph, "MatMul", {"x", "w"}, {"product"}, "product");
  onnx_import::add_node(graph, "Softmax", {"product"}, {"y"}, "softmax");
  onnx_import::add_output(graph, "y");
  return load(ModelBytes{.bytes = model.SerializeAsString()}, {.threads = 1});
}

BindOptions one_row() { return {.shapes = {{"x", {1, kDepth}}}}; }

Tensor filled_rows(int seed, int64_t rows = 1) {
  Tensor tensor(DataType::Float32, {rows, kDepth});
  int64_t index = 0;
  for (float& element : tensor.mutable_as<float>()) {
    element = static_cast<float>((index++ * 7 + seed) % 23) / 23.0F;
  }
  return tensor;
}

// A pool of one executor, whose thread is in a callback until let_go(), and for so many waiting
// requests: during a callback, one more than the pool's limit.
class BusyPool {
 public:
  explicit BusyPool(int64_t max_waiting) : pool_(make_model(), {1, max_waiting - 1}, one_row()) {
    pool_.submit({{"x", filled_rows(0)}}, [this](PoolResult) {
      is_busy_.count_down();
      may_end_.wait();
    });
    is_busy_.wait();
  }
  ~BusyPool() { let_go(); }

  void let_go() {
    if (!may_end_.try_wait()) may_end_.count_down();
  }
  Pool& operator*() { return pool_; }
  Pool* operator->() { return &pool_; }

 private:
  std::latch is_busy_{1};
  std::latch may_end_{1};
  Pool pool_;
};

ErrorKind kind_of(const std::exception_ptr& error) {
  return *kind_of_error([&] { std::rethrow_exception(error); });
}

TEST(Pool, ManyCallersGetWhatOneExecutorGives) {
  constexpr int kCallers = 6;
  constexpr int kRequests = 50;
  const Model model = make_model();
  Executor one = model.bind({.shapes = one_row().shapes, .threads = 1});
  // More executors than most machines have cores, and a queue that is often full.
  Pool pool(model, {.executors = 3, .max_waiting = 2}, one_row());
  std::vector<Tensor> expected;
  const auto rows_of = [](int seed) { return 1 + seed % 4; };
  for (int seed = 0; seed < kCallers; ++seed) {
    expected.push_back(one.run({{"x", filled_rows(seed, rows_of(seed))}})[0]);
  }
  std::atomic<int> equal = 0;
  run_at_once(kCallers, [&](int seed) {
    for (int count = 0; count < kRequests; ++count) {
      const PoolRequest request = pool.submit({{"x", filled_rows(seed, rows_of(seed))}});
      if (has_same_bits(request.get()[0], expected[static_cast<size_t>(seed)])) ++equal;
    }
  });
  EXPECT_EQ(equal, kCallers * kRequests);
}

TEST(Pool, ExecutorsHaveOneThreadUnlessMoreAreAskedFor) {
  const Model model = make_model();
  const Pool two(model, {.executors = 2}, one_row());
  EXPECT_EQ(two.executors(), 2);
  EXPECT_EQ(two.threads(), 1);
  const Pool all(model, {}, one_row());
  EXPECT_EQ(all.executors(), model.bind(one_row()).threads());
  BindOptions three = one_row();
  three.threads = 3;
  EXPECT_EQ(Pool(model, {.executors = 1}, three).threads(), 3);
  three.threads = all.executors() + 1;
  EXPECT_EQ(Pool(model, {}, three).executors(), 1) << "more threads than cores";
}

TEST(Pool, OptionsHaveARange) {
  const Model model = make_model();
  EXPECT_THAT(error_of([&] { Pool(model, {.executors = -1}, one_row()); }),
              StartsWith("InvalidArgument: option 'executors' of the pool: "));
  EXPECT_THAT(error_of([&] { Pool(model, {.max_waiting = -1}, one_row()); }),
              StartsWith("InvalidArgument: option 'max_waiting' of the pool: "));
}

TEST(Pool, WithoutShapesRequestsDecide) {
  Pool pool(make_model(), {.executors = 1}, {.threads = 1});
  for (const int64_t rows : {3, 2, 7}) {
    const Tensor x(DataType::Float32, {rows, one_row().shapes.at("x")[1]});
    EXPECT_EQ(pool.submit({{"x", x}}).get()[0].dims()[0], rows);
  }
}

TEST(Pool, AnErrorStaysWithItsRequest) {
  Pool pool(make_model(), {.executors = 1}, one_row());
  const PoolRequest missing = pool.submit({});
  const PoolRequest wrong = pool.submit({{"x", Tensor(DataType::Int64, {1, kDepth})}});
  const PoolRequest unfit = pool.submit({{"x", Tensor(DataType::Float32, {1, kDepth + 1})}});
  const PoolRequest right = pool.submit({{"x", filled_rows(1)}});
  EXPECT_EQ(right.get()[0].dims(), (std::vector<int64_t>{1, kWidth}));
  for (const PoolRequest& request : {missing, wrong, unfit}) {
    EXPECT_THAT(error_of([&] { request.get(); }), StartsWith("InvalidArgument: input 'x': "));
  }
  EXPECT_TRUE(right.is_done());
  EXPECT_FALSE(right.is_running());
}

TEST(Pool, AFullQueueRefusesAndACancelledRequestLeavesIt) {
  BusyPool pool(2);
  PoolRequest first = pool->submit({{"x", filled_rows(1)}});
  PoolRequest second = *pool->try_submit({{"x", filled_rows(2)}});
  EXPECT_EQ(pool->waiting(), 2);
  EXPECT_FALSE(pool->try_submit({{"x", filled_rows(3)}}));
  EXPECT_FALSE(pool->try_submit({{"x", filled_rows(3)}}, {}, milliseconds(5)));
  EXPECT_TRUE(first.cancel());
  EXPECT_FALSE(first.cancel()) << "it has ended";
  EXPECT_TRUE(first.is_done());
  EXPECT_THAT(error_of([&] { first.get(); }), StartsWith("Cancelled: request of a pool: "));
  const std::optional<PoolRequest> third = pool->try_submit({{"x", filled_rows(3)}});
  ASSERT_TRUE(third);
  EXPECT_FALSE(second.wait_for(milliseconds(1)));
  pool.let_go();
  EXPECT_EQ(second.get().size(), 1U);
  EXPECT_EQ(third->get_any().size(), 1U);
  EXPECT_FALSE(second.cancel());
}

TEST(Pool, WithoutAQueueRequestsNeedAnIdleExecutor) {
  Pool pool(make_model(), {.executors = 1, .max_waiting = 0}, one_row());
  EXPECT_EQ(pool.submit({{"x", filled_rows(1)}}).get().size(), 1U);
  // The next request of a caller that has a result is never refused.
  for (int count = 0; count < 200; ++count) {
    const std::optional<PoolRequest> request = pool.try_submit({{"x", filled_rows(count)}});
    ASSERT_TRUE(request);
    EXPECT_FALSE(request->get().empty());
  }
  BusyPool busy(1);
  EXPECT_TRUE(busy->try_submit({{"x", filled_rows(1)}}));
  EXPECT_FALSE(busy->try_submit({{"x", filled_rows(1)}}));
}

TEST(Pool, SubmitWaitsForAPlace) {
  BusyPool pool(1);
  const PoolRequest first = pool->submit({{"x", filled_rows(1)}});
  std::atomic<bool> is_submitted = false;
  std::thread waiting([&] {
    const PoolRequest second = pool->submit({{"x", filled_rows(2)}});
    is_submitted = true;
    EXPECT_EQ(second.get().size(), 1U);
  });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(is_submitted);
  pool.let_go();
  waiting.join();
  EXPECT_TRUE(first.wait_for(seconds(60)));
}

TEST(Pool, ACallbackGetsOutputsAndInputs) {
  std::latch is_done{2};
  PoolResult good;
  PoolResult bad;
  Pool pool(make_model(), {.executors = 1}, one_row());
  const Tensor input = filled_rows(1);
  const PoolRequest request = pool.submit({{"x", input}}, [&](PoolResult result) {
    good = std::move(result);
    is_done.count_down();
  });
  pool.submit({{"unknown", input}}, [&](PoolResult result) {
    bad = std::move(result);
    is_done.count_down();
  });
  is_done.wait();
  EXPECT_FALSE(good.error);
  EXPECT_TRUE(good.has_started);
  EXPECT_EQ(good.outputs.size(), 1U);
  EXPECT_EQ(std::get<Tensor>(good.inputs.at("x")).data(), input.data());
  EXPECT_EQ(kind_of(bad.error), ErrorKind::InvalidArgument);
  EXPECT_TRUE(bad.outputs.empty());
  EXPECT_THAT(error_of([&] { request.get(); }), StartsWith("InvalidArgument: request of a pool: "));
}

TEST(Pool, ClosingRunsWhatWaits) {
  BusyPool pool(4);
  const PoolRequest waiting = pool->submit({{"x", filled_rows(1)}});
  pool->begin_close();
  EXPECT_THAT(error_of([&] { pool->submit({}); }), StartsWith("InvalidArgument: pool: "));
  EXPECT_THAT(error_of([&] { pool->try_submit({}); }), StartsWith("InvalidArgument: pool: "));
  EXPECT_FALSE(waiting.is_done());
  pool.let_go();
  pool->close();
  EXPECT_TRUE(waiting.is_done());
  EXPECT_EQ(waiting.get().size(), 1U);
  pool->close();
}

TEST(Pool, ClosingCancelsWhatWaitsIfAsked) {
  BusyPool pool(4);
  bool was_started = true;
  PoolRequest waiting = pool->submit({{"x", filled_rows(1)}});
  pool->submit({{"x", filled_rows(2)}}, [&](PoolResult result) {
    was_started = result.has_started;
    EXPECT_EQ(kind_of(result.error), ErrorKind::Cancelled);
  });
  pool->begin_close(Pool::Waiting::Cancel);
  EXPECT_FALSE(was_started);
  EXPECT_THAT(error_of([&] { waiting.get(); }), StartsWith("Cancelled: request of a pool: "));
  pool.let_go();
  pool->close();
}

TEST(Pool, ClosingEndsThoseThatWaitForAPlace) {
  BusyPool pool(1);
  pool->submit({{"x", filled_rows(1)}});
  std::thread waiting([&] {
    EXPECT_THAT(error_of([&] { pool->submit({{"x", filled_rows(1)}}); }),
                StartsWith("InvalidArgument: pool: "));
  });
  std::this_thread::sleep_for(milliseconds(5));
  pool->begin_close();
  waiting.join();
}

TEST(Pool, ACallbackDoesNotWaitForItself) {
  std::latch is_done{1};
  Pool pool(make_model(), {.executors = 1, .max_waiting = 1}, one_row());
  pool.submit({{"x", filled_rows(1)}}, [&](PoolResult) {
    EXPECT_TRUE(pool.try_submit({{"x", filled_rows(2)}}));
    EXPECT_TRUE(pool.try_submit({{"x", filled_rows(2)}}));
    EXPECT_FALSE(pool.try_submit({{"x", filled_rows(3)}}));
    EXPECT_THAT(error_of([&] { pool.submit({{"x", filled_rows(3)}}); }),
                StartsWith("InvalidArgument: pool: "));
    EXPECT_THAT(error_of([&] { pool.close(); }), StartsWith("InvalidArgument: pool: "));
    is_done.count_down();
  });
  is_done.wait();
}

TEST(Pool, ACallbackMayDestroyThePool) {
  std::latch may_end{1};
  std::latch is_done{1};
  auto pool = std::make_unique<Pool>(make_model(), PoolOptions{.executors = 2}, one_row());
  pool->submit({{"x", filled_rows(1)}}, [&](PoolResult) {
    may_end.wait();
    pool.reset();
    is_done.count_down();
  });
  may_end.count_down();
  is_done.wait();
  EXPECT_EQ(pool, nullptr);
}

TEST(Pool, DestroyingCancelsWhatWaits) {
  std::optional<PoolRequest> waiting;
  std::thread releasing;
  {
    std::latch is_busy{1};
    std::latch may_end{1};
    Pool pool(make_model(), {.executors = 1}, one_row());
    pool.submit({{"x", filled_rows(0)}}, [&](PoolResult) {
      is_busy.count_down();
      may_end.wait();
    });
    is_busy.wait();
    waiting = pool.submit({{"x", filled_rows(1)}});
    releasing = std::thread([&, request = *waiting] {
      while (!request.is_done()) std::this_thread::sleep_for(milliseconds(1));
      may_end.count_down();
    });
  }
  releasing.join();
  EXPECT_THAT(error_of([&] { waiting->get(); }), StartsWith("Cancelled: request of a pool: "));
  EXPECT_FALSE(waiting->cancel()) << "its pool is gone";
}

TEST(PoolDeathTest, AForkedProcessIsToldWhy) {
  BusyPool busy(4);
  const PoolRequest waiting = busy->submit({{"x", filled_rows(1)}});
  const Model model = make_model();
  auto pool = std::make_unique<Pool>(model, PoolOptions{.executors = 2}, one_row());
  EXPECT_EXIT(
      {
        const auto expect_unsupported = [](const auto& action) {
          try {
            action();
          } catch (const Error& error) {
            if (error.kind() == ErrorKind::Unsupported) return;
          }
          std::_Exit(1);
        };
        expect_unsupported([&] { pool->submit({}); });
        expect_unsupported([&] { pool->try_submit({}); });
        expect_unsupported([&] { waiting.get(); });
        pool->close();
        pool.reset();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(PoolDeathTest, TheProcessEndsWhileRequestsWait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leak_and_exit = [] {
    // Nobody destroys the pool; static so that leak sanitizers can reach it.
    [[maybe_unused]] static Pool* kept = nullptr;
    kept = new Pool(make_model(), {.executors = 2, .max_waiting = 10'000}, one_row());
    for (int count = 0; count < 5'000; ++count) kept->submit({{"x", filled_rows(count)}});
    std::exit(0);
  };
  EXPECT_EXIT(leak_and_exit(), testing::ExitedWithCode(0), "");
}

TEST(PoolDeathTest, AtTheEndOfTheProcessRequestsAreCancelled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end = [] {
    Pool pool(make_model(), {.executors = 1}, one_row());
    std::latch is_busy{1};
    std::latch may_end{1};
    pool.submit({{"x", filled_rows(0)}}, [&](PoolResult) {
      is_busy.count_down();
      may_end.wait();
    });
    is_busy.wait();
    const PoolRequest waiting = pool.submit({{"x", filled_rows(0)}});
    std::thread helper([&] {
      while (!waiting.is_done()) std::this_thread::sleep_for(milliseconds(1));
      may_end.count_down();
    });
    end_background_tasks();
    helper.join();
    if (!error_of([&] { pool.submit({}); }).starts_with("Cancelled: pool: ")) std::_Exit(3);
    try {
      waiting.get();
    } catch (const Error& error) {
      std::_Exit(error.kind() == ErrorKind::Cancelled ? 0 : 1);
    }
    std::_Exit(2);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tessera
