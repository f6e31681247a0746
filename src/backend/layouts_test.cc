#include "backend/layouts.h"

#include "backend/test_plugins.h"
#include "base/errors/error_test.h"
#include "base/matchers_test.h"

namespace tessera {
namespace {

using testing_plugins::Description;
using testing_plugins::open_made;
using testing_plugins::open_mirror;
using testing_plugins::reversed_layout;

struct NamedBackend : plugin::Backend {
  explicit NamedBackend(Description given) : description(std::move(given)) {}
  Description describe() override { return description; }
  Description description;
};

std::string reason_not_opened(const Description& description) {
  return error_of(ErrorKind::Unsupported,
                  [&] { open_made([&] { return std::make_unique<NamedBackend>(description); }); });
}

TEST(Layouts, OneThatLacksAConversionIsRefusedByName) {
  Description description{.name = "lacking", .version = "1"};
  description.layouts = {reversed_layout("lacking:a")};
  EXPECT_EQ(reason_not_opened(description), "");
  description.layouts[0].from_default = nullptr;
  EXPECT_THAT(reason_not_opened(description), HasSubstr("layout 'lacking:a' lacks its conversion "
                                                        "from_default"));
  description.layouts = {reversed_layout("lacking:a")};
  description.layouts[0].to_default = nullptr;
  EXPECT_THAT(reason_not_opened(description), HasSubstr("to_default"));
}

TEST(Layouts, NamesAreSharedOrBeginWithTheBackends) {
  const struct {
    std::string layout;
    bool is_legal;
  } cases[] = {{"nhwc", true},       {"nchw16c", true},  {"mine:x", true}, {"mine:", false},
               {"row_major", false}, {"other:x", false}, {"x", false}};
  for (const auto& [layout, is_legal] : cases) {
    Description description{.name = "mine", .version = "1"};
    description.layouts = {reversed_layout(layout)};
    EXPECT_EQ(reason_not_opened(description).empty(), is_legal) << layout;
  }
}

TEST(Layouts, RoutesGoDirectlyOrThroughTheDefault) {
  const std::vector plugins = {open_mirror([](const auto&, auto&) {})};
  const LayoutTable table(plugins);
  const LayoutId a = *table.find("mirror:a");
  const LayoutId b = *table.find("mirror:b");
  const TensorType type{DataType::Float32, {3}};
  EXPECT_TRUE(table.route(a, a, type).empty());
  EXPECT_EQ(table.route(a, b, type).size(), 1U);
  const std::vector<ConversionStep> back = table.route(b, a, type);
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].to, kDefaultLayout);
  EXPECT_EQ(back[1].to, a);
  EXPECT_EQ(table.hops(a, b), 1);
  EXPECT_EQ(table.hops(b, a), 2);
}

// A backend whose nhwc is the reverse, with a direct conversion to nchw8c.
std::shared_ptr<const Plugin> open_nhwc(const std::string& name, bool is_simple) {
  Description description{.name = name, .version = "1"};
  description.layouts = {reversed_layout("nhwc"), reversed_layout("nchw8c")};
  for (plugin::Layout& layout : description.layouts) layout.has_simple_conversions = is_simple;
  description.conversions = {
      {.from = "nhwc",
       .to = "nchw8c",
       .convert = [](plugin::RunContext&, const plugin::Buffer&, const plugin::Buffer&) {}}};
  return open_made([&] { return std::make_unique<NamedBackend>(description); });
}

TEST(Layouts, SimpleConversionsYieldToThoseOfAnotherPlugin) {
  const TensorType type{DataType::Float32, {3}};
  const struct {
    bool is_first_simple;
    bool is_second_simple;
    std::string expected;
  } cases[] = {{false, false, "first"},
               {true, false, "second"},
               {false, true, "first"},
               {true, true, "first"}};
  for (const auto& [is_first_simple, is_second_simple, expected] : cases) {
    const std::vector plugins = {open_nhwc("first", is_first_simple),
                                 open_nhwc("second", is_second_simple)};
    const LayoutTable table(plugins);
    const LayoutId nhwc = *table.find("nhwc");
    const LayoutId blocked = *table.find("nchw8c");
    for (const auto& [from, to] :
         {std::pair(nhwc, kDefaultLayout), {kDefaultLayout, nhwc}, {nhwc, blocked}}) {
      const std::vector<ConversionStep> route = table.route(from, to, type);
      ASSERT_EQ(route.size(), 1U);
      EXPECT_EQ(route[0].plugin->name(), expected);
    }
  }
}

TEST(Layouts, HoldWhatTheirPluginSays) {
  const std::vector plugins = {open_mirror([](const auto&, auto&) {})};
  const LayoutTable table(plugins);
  const LayoutId a = *table.find("mirror:a");
  EXPECT_EQ(table.storage_bytes(a, {DataType::Float32, {2, 3}}), 24);
  EXPECT_EQ(table.storage_bytes(a, {DataType::Int8, {2, 3}}), std::nullopt);
  EXPECT_EQ(table.find("mirror:c"), std::nullopt);
}

}  // namespace
}  // namespace tessera
