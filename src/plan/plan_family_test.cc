// Plans that get other sizes: each is compared with the validator of plans, and with what a plan
// made for these sizes needs.
#include "plan/plan_family.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tessera {
namespace {

using Dims = std::vector<int64_t>;

constexpr uint32_t kMayBeInPlace = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;

// A kernel that takes all sizes when it runs.
std::shared_ptr<tessera_candidate> any_size() {
  auto abi = std::make_shared<tessera_candidate>();
  abi->struct_size = sizeof(*abi);
  return abi;
}

// A graph of values whose dimensions are `sizes`, numbers or those of a symbol.
class FamilyMaker {
 public:
  // A dimension below 0 is the symbol -1, -2, ..., whose sizes `symbols` has; -1 if a size is known
  // only in the run.
  explicit FamilyMaker(std::vector<int64_t> symbols) : symbols_(std::move(symbols)) {}

  ValueId value(const Dims& dims) {
    open_.push_back(dims);
    Shape shape;
    for (const int64_t dim : dims_of(dims, symbols_)) {
      shape.push_back(dim < 0 ? Dim::symbol("found") : Dim(dim));
    }
    graph_.values.push_back({.name = "v" + std::to_string(open_.size()),
                             .type = Type::tensor(DataType::Float32, shape)});
    return {static_cast<int32_t>(graph_.values.size()) - 1};
  }
  ValueId input(const Dims& dims) {
    graph_.inputs.push_back(value(dims));
    return graph_.inputs.back();
  }
  ValueId constant(const Dims& dims) {
    const ValueId made = value(dims);
    graph_[made].constant = Tensor(DataType::Float32, dims);
    return made;
  }
  void output(ValueId id) { graph_.outputs.push_back(id); }

  Candidate& kernel(const std::vector<ValueId>& inputs, ValueId output) {
    Candidate candidate;
    candidate.abi = any_size();
    for (const ValueId input : inputs) {
      candidate.inputs.push_back({.value = input, .layout = kDefaultLayout});
    }
    candidate.outputs.push_back({.value = output, .layout = kDefaultLayout});
    placement_.chosen.push_back(static_cast<int>(offers_.candidates.size()));
    offers_.candidates.push_back(std::move(candidate));
    return offers_.candidates.back();
  }

  void make() {
    plan_ = make_plan(graph_, offers_, placement_, layouts_, {});
    family_ = std::make_unique<PlanFamily>(graph_, offers_, layouts_, plan_);
  }
  bool resize(const std::vector<int64_t>& symbols) {
    std::vector<Dims> all;
    for (const Dims& dims : open_) all.push_back(dims_of(dims, symbols));
    return family_->resize(all, plan_);
  }
  // The arena of a plan that is made for these sizes.
  int64_t planned_bytes(const std::vector<int64_t>& symbols) const {
    Graph graph = graph_;
    for (size_t index = 0; index < open_.size(); ++index) {
      graph.values[index].type.shape = shape_from(dims_of(open_[index], symbols));
    }
    return make_plan(graph, offers_, placement_, layouts_, {}).arena_bytes;
  }

  void keep_offsets() { family_->keep_offsets(); }
  const PlanFamily& family() const { return *family_; }
  const ExecutionPlan& plan() const { return plan_; }

 private:
  static Dims dims_of(Dims dims, const std::vector<int64_t>& symbols) {
    for (int64_t& dim : dims) {
      if (dim < 0) dim = symbols[static_cast<size_t>(-dim - 1)];
    }
    return dims;
  }

  std::vector<int64_t> symbols_;
  std::vector<Dims> open_;
  Graph graph_;
  Offers offers_;
  Placement placement_;
  LayoutTable layouts_{{}};
  ExecutionPlan plan_;
  std::unique_ptr<PlanFamily> family_;
};

// x -> a -> y, with rows that are a symbol.
FamilyMaker chain(int64_t rows, const std::shared_ptr<tessera_candidate>& second = any_size()) {
  FamilyMaker maker({rows});
  const ValueId x = maker.input({-1, 64});
  const ValueId a = maker.value({-1, 32});
  const ValueId y = maker.value({-1, 16});
  maker.kernel({x}, a);
  Candidate& last = maker.kernel({a}, y);
  last.abi = second;
  last.workspace_bytes = second->workspace_bytes;
  maker.output(y);
  return maker;
}

TEST(PlanFamily, SetsDimensionsBytesAndOffsets) {
  FamilyMaker maker = chain(7);
  maker.make();
  ASSERT_EQ(maker.family().explain_fixed(), "");
  ASSERT_TRUE(maker.resize({100}));
  EXPECT_EQ(maker.plan().arena_bytes, 100 * 32 * 4);
  EXPECT_EQ(maker.plan().lower_bound_bytes, 100 * 32 * 4);
  EXPECT_TRUE(maker.plan().is_smallest_arena);
  const PlanBuffer& x = maker.plan().buffers[0];
  EXPECT_EQ(x.type->dims, (Dims{100, 64}));
  EXPECT_EQ(x.bytes, 100 * 64 * 4);
  EXPECT_EQ(explain_violation(maker.plan()), "");
}

TEST(PlanFamily, LeavesOpenWhatIsKnownOnlyInTheRun) {
  FamilyMaker maker({7, -1});
  const ValueId x = maker.input({-1, 64});
  const ValueId found = maker.value({3, -2});
  const ValueId y = maker.value({-1, 16});
  const ValueId z = maker.value({-1, 16});
  maker.kernel({x}, found).outputs[0].is_size_unknown = true;
  maker.kernel({x}, y);
  maker.kernel({y, found}, z);
  maker.output(found);
  maker.output(z);
  maker.make();
  ASSERT_EQ(maker.family().explain_fixed(), "");
  ASSERT_TRUE(maker.resize({100, -1}));
  EXPECT_EQ(maker.plan().arena_bytes, 100 * 16 * 4);
  EXPECT_EQ(explain_violation(maker.plan()), "");
  for (const PlanBuffer& buffer : maker.plan().buffers) {
    EXPECT_EQ(buffer.type.has_value(), buffer.value != found);
  }
}

TEST(PlanFamily, KeepsTheOffsetsOfTheLargestSizes) {
  FamilyMaker maker = chain(10);
  maker.make();
  ASSERT_TRUE(maker.resize({1000}));
  maker.keep_offsets();
  const auto offsets = [&] {
    std::vector<int64_t> all{maker.plan().arena_bytes};
    for (const PlanBuffer& buffer : maker.plan().buffers) all.push_back(buffer.offset);
    return all;
  };
  const std::vector<int64_t> kept = offsets();
  for (const int64_t rows : {2, 999, 1000}) {
    ASSERT_TRUE(maker.resize({rows}));
    EXPECT_EQ(offsets(), kept) << rows;
    EXPECT_EQ(explain_violation(maker.plan()), "");
  }
  ASSERT_TRUE(maker.resize({5000}));
  EXPECT_GT(maker.plan().arena_bytes, kept[0]);
  ASSERT_TRUE(maker.resize({7}));
  EXPECT_EQ(offsets(), kept);
}

TEST(PlanFamily, KeepsZeroOneAndMoreApart) {
  FamilyMaker maker = chain(7);
  maker.make();
  EXPECT_FALSE(maker.resize({1}));
  EXPECT_FALSE(maker.resize({0}));
  EXPECT_EQ(maker.plan().buffers[0].type->dims, (Dims{7, 64})) << "a refusal changes nothing";
  EXPECT_TRUE(maker.resize({2}));
}

TEST(PlanFamily, KeepsEqualDimensionsOfAKernelEqual) {
  FamilyMaker maker({64});
  const ValueId x = maker.input({-1, 64});
  const ValueId y = maker.value({-1, 64});
  maker.kernel({x}, y);
  maker.output(y);
  maker.make();
  EXPECT_FALSE(maker.resize({65})) << "its kernel may rely on as many rows as columns";
  EXPECT_TRUE(maker.resize({64}));
}

TEST(PlanFamily, KeepsTheDimensionsThatAKernelWasBuiltFor) {
  constexpr tessera_built_for kRows = {0, 0};
  const auto abi = any_size();
  abi->built_for = &kRows;
  abi->built_for_count = 1;
  FamilyMaker maker = chain(7, abi);
  maker.make();
  EXPECT_FALSE(maker.resize({8}));
  abi->flags = TESSERA_CANDIDATE_BUILT_FOR_ALL;
  FamilyMaker other = chain(7, abi);
  other.make();
  EXPECT_EQ(other.family().explain_fixed(), "its kernel is built for all of its dimensions");
}

TEST(PlanFamily, AsksForTheWorkspaceOfOtherSizes) {
  const auto abi = any_size();
  abi->workspace_bytes = 7 * 100;
  abi->workspace_for = [](void*, const tessera_buffer* inputs, const tessera_buffer*) -> int64_t {
    return inputs[0].dims[0] > 1000 ? -1 : inputs[0].dims[0] * 100;
  };
  FamilyMaker maker = chain(7, abi);
  maker.make();
  ASSERT_TRUE(maker.resize({50}));
  EXPECT_EQ(maker.plan().steps[1].workspace_bytes, 5000);
  EXPECT_EQ(explain_violation(maker.plan()), "");
  EXPECT_FALSE(maker.resize({1001})) << "the kernel does not take so many";
}

TEST(PlanFamily, RefusesSizesWithWhichValuesCouldNotShareMemory) {
  FamilyMaker maker({5, 5});
  const ValueId x = maker.input({-1, 3});
  const ValueId a = maker.value({-1, 3});
  const ValueId b = maker.value({3, -2});
  const ValueId y = maker.value({3, -2});
  maker.kernel({x}, a);
  Candidate& over = maker.kernel({a}, b);
  over.outputs[0].requests = kMayBeInPlace;
  over.outputs[0].in_place_input = 0;
  maker.kernel({b}, y);
  maker.output(y);
  maker.make();
  ASSERT_EQ(maker.plan().steps[1].outputs[0].request, TESSERA_REQUEST_IN_PLACE);
  EXPECT_TRUE(maker.resize({9, 9}));
  EXPECT_FALSE(maker.resize({9, 8}));
}

TEST(PlanFamily, RefusesSizesWithWhichAViewIsNotAllOfAConstant) {
  FamilyMaker maker({8});
  const ValueId table = maker.constant({8, 4});
  const ValueId rows = maker.value({-1, 4});
  const ValueId x = maker.input({-1, 4});
  const ValueId y = maker.value({-1, 4});
  maker.kernel({table}, rows).flags = TESSERA_CANDIDATE_VIEW;
  maker.kernel({rows, x}, y);
  maker.output(y);
  maker.make();
  ASSERT_EQ(maker.family().explain_fixed(), "");
  EXPECT_FALSE(maker.resize({7})) << "the first rows of a table are a view only if these are all";
}

TEST(PlanFamily, RandomPlansStaySoundAndSmall) {
  double worst = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int limit) {
      return static_cast<int64_t>(random() % static_cast<unsigned>(limit));
    };
    FamilyMaker maker({10 + below(90), 100 + below(900)});
    std::vector<ValueId> made;
    const auto dims = [&] { return Dims{-1 - below(2), 3 + below(60)}; };
    for (int count = 0; count < 2; ++count) made.push_back(maker.input(dims()));
    for (int count = 0; count < 40; ++count) {
      const size_t last = made.size();
      const ValueId near =
          made[last - 1 - static_cast<size_t>(below(static_cast<int>(std::min<size_t>(last, 4))))];
      const ValueId any = made[static_cast<size_t>(below(static_cast<int>(last)))];
      const ValueId to = maker.value(dims());
      maker.kernel(near == any ? std::vector{near} : std::vector{near, any}, to);
      made.push_back(to);
    }
    maker.output(made.back());
    maker.make();
    ASSERT_EQ(maker.family().explain_fixed(), "");
    for (int count = 0; count < 5; ++count) {
      const std::vector<int64_t> symbols = {2 + below(500), 2 + below(3000)};
      if (!maker.resize(symbols)) continue;  // two sizes were equal
      ASSERT_EQ(explain_violation(maker.plan()), "") << seed;
      EXPECT_LE(maker.plan().lower_bound_bytes, maker.plan().arena_bytes);
      worst = std::max(worst, static_cast<double>(maker.plan().arena_bytes) /
                                  static_cast<double>(maker.planned_bytes(symbols)));
    }
  }
  EXPECT_LT(worst, 3) << "times the arena that an exact plan needs";
  EXPECT_GT(worst, 0) << "no plan was resized";
}

}  // namespace
}  // namespace tessera
