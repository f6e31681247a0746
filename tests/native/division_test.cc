// Divisions of integers by zero end the run with an error, in every form of the loop.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/contract/run_context.h"
#include "backend/graph_view.h"
#include "backend/host.h"
#include "elementwise/element_functions.h"
#include "infer/infer.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

struct DivisionCase {
  const char* op;
  std::vector<int64_t> left;
  std::vector<int64_t> right;
  bool has_zero;
};

std::string run_error_of(const DivisionCase& row) {
  const std::vector<std::shared_ptr<const Plugin>> plugins = {Plugin::open(
      std::string(TESSERA_PLUGIN_FOLDER) + "/backend_native.so", std::make_shared<HostServices>())};
  const LayoutTable layouts(plugins);
  const auto dims = [](const std::vector<int64_t>& elements) {
    return std::vector<int64_t>{static_cast<int64_t>(elements.size())};
  };
  GraphBuilder builder(all_ops(), 17);
  const auto type = [&](const std::vector<int64_t>& elements) {
    return Type::tensor(DataType::Int64, shape_from(dims(elements)));
  };
  builder.input("x", type(row.left)).input("y", type(row.right));
  builder.node("z", row.op, {"x", "y"}).output("z");
  const Graph graph = infer_types(builder.graph(), all_ops(), Log());
  const tessera_graph view(graph, all_ops());
  const Offers offers = collect_offers(view, plugins, layouts, {});
  if (offers.candidates.size() != 1) return "there is no single candidate";
  const Kernel kernel = offers.candidates.front().build(1);
  std::array<std::vector<int64_t>, 3> elements = {row.left, row.right, {}};
  elements[2].resize(std::max(row.left.size(), row.right.size()));
  std::array<tessera_buffer, 3> buffers = {};
  std::array<std::vector<int64_t>, 3> sizes;
  for (size_t index = 0; index < buffers.size(); ++index) {
    sizes[index] = dims(elements[index]);
    buffers[index].data = elements[index].data();
    buffers[index].bytes = static_cast<int64_t>(elements[index].size() * sizeof(int64_t));
    buffers[index].data_type = static_cast<int32_t>(DataType::Int64);
    buffers[index].rank = 1;
    buffers[index].dims = sizes[index].data();
    buffers[index].request = TESSERA_REQUEST_WRITE;
  }
  ThreadPool pool(2);
  RunContext context(pool);
  return error_of([&] { kernel.run("node 'z'", context, buffers.data(), &buffers[2]); });
}

TEST(NativeDivision, ByZeroIsAnError) {
  const DivisionCase cases[] = {
      {"Div", {6, 7}, {3, 2}, false}, {"Div", {6, 7}, {3, 0}, true},
      {"Div", {6, 7}, {0}, true},     {"Div", {6}, {3, 0}, true},
      {"Mod", {6, 7}, {3, 0}, true},  {"Mod", {6, 7}, {-1, 5}, false},
  };
  for (const DivisionCase& row : cases) {
    const std::string error = run_error_of(row);
    SCOPED_TRACE(std::string(row.op) + ": " + error);
    if (row.has_zero) {
      EXPECT_NE(error.find("expected divisors other than zero"), std::string::npos);
    } else {
      EXPECT_EQ(error, "");
    }
  }
}

// Of floats of all sizes, and of multiples of the divisor and their neighbours.
TEST(NativeDivision, RemaindersOfFloatsAreExact) {
  std::mt19937 random(7);
  const auto any_float = [&](int least, int most) {
    const auto fraction = static_cast<float>(random() % (1U << 24)) - 0x1p23F;
    const int span = most - least + 1;
    return std::ldexp(fraction, least + static_cast<int>(random() % static_cast<unsigned>(span)));
  };
  const auto check = [](float left, float right) {
    const float found = native::element::TruncatedMod::of(left, right);
    const float exact = std::fmod(left, right);
    if (std::isnan(exact)) {
      EXPECT_TRUE(std::isnan(found)) << left << " and " << right;
    } else {
      EXPECT_EQ(std::memcmp(&found, &exact, sizeof(float)), 0)
          << left << " and " << right << ": " << found << ", not " << exact;
    }
  };
  for (int index = 0; index < 200000; ++index) {
    check(any_float(-160, 100), any_float(-160, 100));
    const float right = any_float(-20, 0);
    check(any_float(-25, 10), right);
    const float multiple = right * static_cast<float>(random() % 3000000);
    for (const float toward : {-INFINITY, multiple, INFINITY}) {
      check(std::nextafter(multiple, toward), right);
    }
  }
  const float special[] = {0.0F, -0.0F, 1.0F, -3.0F, 3e-45F, 3.4e38F, INFINITY, -INFINITY, NAN};
  for (const float left : special) {
    for (const float right : special) check(left, right);
  }
}

}  // namespace
}  // namespace tessera
