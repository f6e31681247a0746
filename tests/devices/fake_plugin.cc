#include "fake_plugin.h"

#include <dlfcn.h>

#include <cstring>
#include <variant>

#include "backend/catalog/catalog.h"
#include "backend/device_memory/owned_storage.h"
#include "backend/host.h"
#include "base/errors/log.h"
#include "infer/infer.h"

namespace tessera {
namespace {

template <class Function>
Function* symbol(void* library, const char* name) {
  void* found = ::dlsym(library, name);
  EXPECT_NE(found, nullptr) << name;
  return reinterpret_cast<Function*>(found);
}

std::string settings_text(int peer) { return "devices=2,peer=" + std::to_string(peer); }

}  // namespace

FakeControl::FakeControl() {
  void* library = ::dlopen(TESSERA_FAKE_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << ::dlerror();
  configure_ = symbol<decltype(fake_configure_text)>(library, "fake_configure_text");
  get_counters_ = symbol<decltype(fake_get_counters)>(library, "fake_get_counters");
  reset_ = symbol<decltype(fake_reset_counters)>(library, "fake_reset_counters");
  violation_ = symbol<decltype(fake_violation)>(library, "fake_violation");
}

void FakeControl::configure(const std::string& settings) const {
  EXPECT_EQ(configure_(settings.c_str()), 0) << settings;
}

fake_counters FakeControl::counters(int device) const {
  fake_counters counters = {};
  get_counters_(device, &counters);
  return counters;
}

std::string FakeControl::violations() const {
  std::string all;
  char text[1000];
  for (int64_t index = 0; violation_(index, text, sizeof(text)) >= 0; ++index) {
    all += std::string(text) + "\n";
  }
  return all;
}

FakeDevices::FakeDevices(int peer) : registry_(ops::make_registry()), pool_(1) {
  fake_.configure(settings_text(peer));
  fake_.reset();
  plugins_.push_back(Plugin::open(TESSERA_FAKE_PLUGIN, std::make_shared<HostServices>()));
  plugins_.push_back(
      Plugin::open_linked(catalog().back().open, "reference", std::make_shared<HostServices>()));
}

Graph FakeDevices::typed(const RandomGraph& made) const {
  return infer_types(made.builder.graph(), registry_, Log());
}

BuiltPlan FakeDevices::build(const Graph& graph, const std::map<std::string, Where>& where,
                             PackStore& packs) const {
  PlanOptions options;
  for (const auto& [node, place] : where) {
    const bool is_on_host = place == Where::Host;
    options.selection.pins.push_back({node, is_on_host ? "reference" : "fake",
                                      is_on_host              ? ""
                                      : place == Where::First ? "fake:0"
                                                              : "fake:1"});
  }
  const BuildServices services{
      .registry = registry_, .packs = packs, .pool = pool_, .plugins = plugins_};
  return std::get<PlanResult>(build_plan(graph, options, services)).built;
}

std::vector<Tensor> FakeDevices::inputs_of(const Graph& graph, const RandomGraph& made) {
  std::vector<Tensor> inputs;
  for (const ValueId input : graph.inputs) inputs.push_back(made.fed.at(graph[input].name));
  return inputs;
}

std::vector<Tensor> FakeDevices::placed(const BuiltPlan& built, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> placed;
  for (size_t index = 0; index < inputs.size(); ++index) {
    const std::string& device = built.graph[built.graph.inputs[index]].io_device;
    placed.push_back(device.empty() ? inputs[index] : on_device(built, device, inputs[index]));
  }
  return placed;
}

Tensor FakeDevices::on_device(const BuiltPlan& built, const std::string& device,
                              const Tensor& tensor) {
  const std::optional<DeviceId> id = built.layouts->find_device(device);
  const Tensor copy = new_tensor(built.layouts->device(*id), tensor.type(), tensor.dims());
  copy.device_storage()->copy_from_host(0, tensor.data(), tensor.bytes());
  return copy;
}

std::vector<Tensor> FakeDevices::expected(const Graph& graph,
                                          const std::vector<Tensor>& inputs) const {
  return Interpreter(graph, registry_, 1).run(inputs);
}

void FakeDevices::expect_equal(const std::vector<Tensor>& expected,
                               const std::vector<Tensor>& found, const std::string& where) {
  ASSERT_EQ(expected.size(), found.size()) << where;
  for (size_t index = 0; index < expected.size(); ++index) {
    ASSERT_EQ(expected[index].dims(), found[index].dims()) << where;
    const Tensor tensor = found[index].to_host();
    ASSERT_EQ(std::memcmp(expected[index].data(), tensor.data(),
                          static_cast<size_t>(expected[index].bytes())),
              0)
        << where << ", output " << index;
  }
}

RandomGraph FakeDevices::chain(int length) const {
  RandomGraph made(registry_, 17);
  Dice dice(7);
  made.input("x", dice.tensor({2, 3}));
  std::string value = "x";
  for (int index = 0; index < length; ++index) {
    const std::string next = "v" + std::to_string(index);
    made.node("n" + std::to_string(index), index % 2 == 0 ? "Neg" : "Abs", {value}, {next});
    value = next;
  }
  return made.ending_in(value);
}

std::map<std::string, Where> FakeDevices::all_on(const Graph& graph, Where where) {
  std::map<std::string, Where> places;
  for (const Node& node : graph.nodes) places[node.name] = where;
  return places;
}

}  // namespace tessera
