#include "microbench/group_bench.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <utility>

#include "backend/contract/run_context.h"
#include "backend/contract/status.h"
#include "backend/device_memory/hosted_kernel.h"
#include "backend/graph_view.h"
#include "base/errors/check.h"
#include "base/machine/cache.h"
#include "base/machine/processor_load.h"
#include "base/threads/stopwatch.h"
#include "microbench/device_bench.h"
#include "microbench/fastest_run.h"
#include "tessera/error.h"
#include "verify/check_candidate.h"

namespace tessera::tuning {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

size_t at(ValueId id) { return static_cast<size_t>(id.index); }

// Runs `body` and turns an exception into the reason of a failure.
Outcome attempt(const std::function<Outcome()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    return {.reason = error.message()};
  } catch (const std::bad_alloc&) {
    return {.reason = "there was not enough memory for it"};
  }
}

// The time of a run that uses only the calling thread and does not wait is its CPU time.
Outcome outcome_of(const Stopwatch::Reading& reading, const ThreadPool& pool,
                   const ContentionProbe::Reading& cores) {
  const bool is_alone = pool.threads() == 1 && !reading.has_blocked;
  return {.seconds = reading.was_preempted && is_alone ? reading.thread_seconds : reading.seconds,
          .was_preempted = reading.was_preempted && !is_alone,
          .slowdown = cores.slowdown,
          .slowdown_p90 = cores.often};
}

tessera_buffer to_abi(const TensorType& type, void* data, int64_t bytes, int32_t request) {
  tessera_buffer buffer = {};
  buffer.data = data;
  buffer.bytes = bytes;
  buffer.data_type = static_cast<int32_t>(type.element);
  buffer.rank = static_cast<int32_t>(type.dims.size());
  buffer.dims = type.dims.data();
  buffer.request = request;
  return buffer;
}

// Spare bytes after every buffer, so that a conversion that writes too far does no harm. Checks
// detect such conversions.
constexpr int64_t kSpareBytes = 4096;

// Reading this multiple of a cache's size leaves almost nothing of its former contents.
constexpr double kFillFactor = 1.25;

// Allocates `bytes` with the alignment that kernels are promised.
Tensor allocate(int64_t bytes) { return {DataType::UInt8, {bytes + kSpareBytes}}; }

// Touches the pages, too.
Tensor zeros(int64_t bytes) {
  Tensor memory = allocate(bytes);
  std::memset(memory.mutable_data(), 0, static_cast<size_t>(memory.bytes()));
  return memory;
}

// The buffers of one candidate for timing.
struct Buffers {
  std::vector<Tensor> memory;     // of inputs and outputs, as far as it is their own
  std::vector<TensorType> types;  // in the same order; must not be moved any more
  std::vector<bool> is_weight;    // by input
  std::vector<tessera_buffer> inputs;
  std::vector<tessera_buffer> outputs;
  std::vector<Tensor> dynamic;  // by output: those of a size known only at run time
  Tensor workspace;
};

struct Entry {
  Candidate candidate;  // with the ids of the group's graph
  std::optional<Kernel> kernel;
  std::vector<std::shared_ptr<verification::GuardedMemory>>
      packs;  // from the check, if there was one
  std::optional<Buffers> buffers;
  std::unique_ptr<DeviceBuffers> device_buffers;  // of a candidate on a device

  bool is_on_device() const { return candidate.device != kHostDevice; }
};

// Translates the candidate to the ids of `group` by the names of its values and nodes; nullopt if a
// name is missing.
std::optional<Candidate> translated_to(const Candidate& candidate, const Graph& whole,
                                       const Graph& group) {
  std::map<std::string, ValueId> ids;
  for (size_t index = 0; index < group.values.size(); ++index) {
    ids.emplace(group.values[index].name, ValueId{static_cast<int32_t>(index)});
  }
  Candidate moved = candidate;
  const auto move = [&](auto& ports) {
    return std::all_of(ports.begin(), ports.end(), [&](auto& port) {
      const auto found = ids.find(whole[port.value].name);
      if (found != ids.end()) port.value = found->second;
      return found != ids.end();
    });
  };
  if (!move(moved.inputs) || !move(moved.outputs)) return std::nullopt;
  moved.nodes.clear();
  for (size_t index = 0; index < group.nodes.size(); ++index) {
    moved.nodes.push_back({static_cast<int32_t>(index)});
  }
  if (moved.nodes.size() != candidate.nodes.size()) return std::nullopt;
  return moved;
}

}  // namespace

struct GroupBench::State {
  State(std::vector<std::shared_ptr<const Plugin>> given, const ops::Registry& ops, int threads)
      : plugins(std::move(given)),
        layouts(plugins),
        registry(ops),
        devices(layouts),
        pools(std::in_place, threads, Denormals::Flush) {}

  ThreadPool& pool_of(int threads) { return threads == 1 ? pools->one : pools->all; }
  void enter(BenchStage stage, double announced_seconds = 0) const {
    if (watcher) watcher(stage, announced_seconds);
  }
  Entry& built(const CandidateId& id);
  const Tensor& value(ValueId id) const { return expected.values[at(id)]; }

  std::optional<Candidate> propose(const CandidateId& id);
  std::optional<Candidate> find(const CandidateId& id);
  void set_special(const GroupCase& given);
  void add_output(const CandidateOutput& port, Buffers& buffers);
  Buffers make_buffers(const Entry& entry, ThreadPool& pool);
  Tensor to_layout(const Tensor& tensor, LayoutId layout, ThreadPool& pool);
  Tensor pack(const tessera_pack& pack, const Tensor& tensor, ThreadPool& pool);
  Tensor stored(const CandidateInput& port, ThreadPool& pool);
  Outcome run(Entry& entry, Weights weights, ThreadPool& pool);
  Outcome run_on_device(Entry& entry, ThreadPool& pool);
  Outcome convert(const ConversionKey& key);
  void read(const void* data, int64_t bytes, ThreadPool& pool);
  void displace(ThreadPool& pool);

  std::vector<std::shared_ptr<const Plugin>> plugins;
  LayoutTable layouts;
  const ops::Registry& registry;
  DeviceBench devices;
  struct Pools {
    Pools(int threads, Denormals rule) : denormals(rule), all(threads, rule), one(1, rule) {}
    Denormals denormals;
    ThreadPool all;
    ThreadPool one;
  };
  std::optional<Pools> pools;
  ContentionProbe probe;
  StageWatcher watcher;  // empty in a process that must not end
  GuardPagePool guard_pages;

  bool has_group = false;
  GroupCase group;
  verification::ExpectedValues expected;  // of the group's values, as far as known
  std::vector<Tensor> special;            // for special values; empty: not judged
  std::vector<std::pair<CandidateId, Candidate>> offered;
  std::map<int, Offers> proposed;  // by threads: the offers of plug-ins for the group alone
  std::map<CandidateId, Entry> entries;

  std::optional<ConversionKey> conversion;  // the conversion that owns these buffers
  Tensor conversion_from;
  Tensor conversion_to;
  std::vector<char> displacing_memory;  // stands for the rest of a graph: see displace()
};

Entry& GroupBench::State::built(const CandidateId& id) {
  const auto found = entries.find(id);
  TESSERA_CHECK(found != entries.end() && found->second.kernel.has_value(),
                "a candidate is built before it is checked or run");
  return found->second;
}

std::optional<Candidate> GroupBench::State::propose(const CandidateId& id) {
  auto asked = proposed.find(id.threads);
  if (asked == proposed.end()) {
    Offers offers;
    const tessera_graph view(group.graph, registry);
    ThreadPool& pool = pool_of(id.threads);
    const OfferOptions options{.threads = pool.threads(),
                               .precision = group.precision,
                               .nan = group.nan,
                               .accuracy = group.accuracy};
    pool.execute([&] { offers = collect_offers(view, plugins, layouts, options); });
    asked = proposed.emplace(id.threads, std::move(offers)).first;
  }
  for (const Candidate& candidate : asked->second.candidates) {
    if (candidate.nodes.size() != group.graph.nodes.size()) continue;
    if (id_alone(candidate, group.graph, layouts, id.threads) == id) return candidate;
  }
  return std::nullopt;
}

std::optional<Candidate> GroupBench::State::find(const CandidateId& id) {
  for (const auto& [known, candidate] : offered) {
    if (known == id) return candidate;
  }
  return propose(id);
}

Tensor GroupBench::State::to_layout(const Tensor& tensor, LayoutId layout, ThreadPool& pool) {
  const TensorType type{tensor.type(), tensor.dims()};
  Tensor current = allocate(tensor.bytes());
  std::memcpy(current.mutable_data(), tensor.data(), static_cast<size_t>(tensor.bytes()));
  for (const ConversionStep& step : layouts.route(kDefaultLayout, layout, type)) {
    Tensor next = allocate(layouts.known_storage_bytes(step.to, type));
    RunContext context(pool);
    const tessera_buffer from =
        to_abi(type, current.mutable_data(), layouts.known_storage_bytes(step.from, type), 0);
    const tessera_buffer to =
        to_abi(type, next.mutable_data(), layouts.known_storage_bytes(step.to, type),
               TESSERA_REQUEST_WRITE);
    pool.execute([&] { tessera::convert(step, "conversion", context, from, to); });
    current = std::move(next);
  }
  return current;
}

Tensor GroupBench::State::pack(const tessera_pack& pack, const Tensor& tensor, ThreadPool& pool) {
  Tensor packed = allocate(pack.bytes);
  const TensorType type{tensor.type(), tensor.dims()};
  const tessera_buffer from = to_abi(type, const_cast<void*>(tensor.data()), tensor.bytes(), 0);
  RunContext context(pool);
  Status status;
  pool.execute([&] {
    status = call_plugin([&](tessera_error* error) {
      return context.checked(
          pack.pack(pack.self, context.abi(), &from, packed.mutable_data(), pack.bytes, error),
          error);
    });
  });
  if (status.is_fine()) return packed;
  throw Error(status.kind(), "weight", "it could not pack a weight: " + status.message);
}

Tensor GroupBench::State::stored(const CandidateInput& port, ThreadPool& pool) {
  const Tensor& tensor = value(port.value);
  if (port.pack != nullptr) return pack(*port.pack, tensor, pool);
  return to_layout(tensor, port.layout, pool);
}

void GroupBench::State::add_output(const CandidateOutput& port, Buffers& buffers) {
  const Tensor& tensor = value(port.value);
  TensorType& type = buffers.types.emplace_back(TensorType{tensor.type(), tensor.dims()});
  if (port.is_size_unknown) {
    buffers.memory.emplace_back();
    tessera_buffer unknown = to_abi(type, nullptr, 0, TESSERA_REQUEST_WRITE);
    unknown.rank = -1;
    unknown.dims = nullptr;
    buffers.outputs.push_back(unknown);
    return;
  }
  const int64_t bytes = layouts.known_storage_bytes(port.layout, type);
  // The contents only matter to kernels that accumulate.
  Tensor& memory = buffers.memory.emplace_back(zeros(bytes));
  const bool only_adds =
      (port.requests & TESSERA_REQUEST_WRITE) == 0 && (port.requests & TESSERA_REQUEST_ADD) != 0;
  buffers.outputs.push_back(to_abi(type, memory.mutable_data(), bytes,
                                   only_adds ? TESSERA_REQUEST_ADD : TESSERA_REQUEST_WRITE));
}

Buffers GroupBench::State::make_buffers(const Entry& entry, ThreadPool& pool) {
  const Candidate& candidate = entry.candidate;
  Buffers buffers;
  const size_t ports = candidate.inputs.size() + candidate.outputs.size();
  buffers.types.reserve(ports);
  buffers.memory.reserve(ports);
  for (size_t index = 0; index < candidate.inputs.size(); ++index) {
    const CandidateInput& port = candidate.inputs[index];
    const Tensor& tensor = value(port.value);
    const TensorType& type = buffers.types.emplace_back(TensorType{tensor.type(), tensor.dims()});
    const bool is_weight = group.graph[port.value].is_constant();
    buffers.is_weight.push_back(is_weight);
    // Nobody writes to weights, and large ones take longer to copy or pack than a kernel to run.
    if (port.pack != nullptr && index < entry.packs.size()) {
      verification::GuardedMemory& made = *entry.packs[index];
      buffers.inputs.push_back(to_abi(type, made.data(), made.bytes(), 0));
      continue;
    }
    if (is_weight && port.pack == nullptr && port.layout == kDefaultLayout) {
      buffers.inputs.push_back(to_abi(type, const_cast<void*>(tensor.data()), tensor.bytes(), 0));
      continue;
    }
    Tensor& memory = buffers.memory.emplace_back(stored(port, pool));
    const int64_t bytes =
        port.pack != nullptr ? port.pack->bytes : layouts.known_storage_bytes(port.layout, type);
    buffers.inputs.push_back(to_abi(type, memory.mutable_data(), bytes, 0));
  }
  for (const CandidateOutput& port : candidate.outputs) add_output(port, buffers);
  buffers.dynamic.resize(candidate.outputs.size());
  buffers.workspace = allocate(entry.kernel->workspace_bytes());
  return buffers;
}

// Reads on the threads that will run a kernel.
void GroupBench::State::read(const void* data, int64_t bytes, ThreadPool& pool) {
  pool.parallel_for(bytes, int64_t{1} << 16, [&](int64_t begin, int64_t end) {
    read_into_caches(static_cast<const char*>(data) + begin, end - begin);
  });
}

// Displaces the contents of the cores' own caches, as the rest of the graph would.
void GroupBench::State::displace(ThreadPool& pool) {
  const auto of_core = static_cast<int64_t>(kFillFactor * static_cast<double>(core_cache_bytes()));
  const int64_t bytes = std::min(group.bytes_between, pool.threads() * of_core);
  if (std::ssize(displacing_memory) < bytes)
    displacing_memory.assign(static_cast<size_t>(bytes), 1);
  read(displacing_memory.data(), bytes, pool);
}

Outcome GroupBench::State::run(Entry& entry, Weights weights, ThreadPool& pool) {
  Buffers& buffers = *entry.buffers;
  RunContext context(pool);
  context.set_workspace(buffers.workspace.mutable_data(), entry.kernel->workspace_bytes());
  context.set_allocator([&](int32_t output, std::span<const int64_t> dims) -> void* {
    const auto index = static_cast<size_t>(output);
    if (output < 0 || index >= buffers.dynamic.size()) return nullptr;
    const DataType element = value(entry.candidate.outputs[index].value).type();
    buffers.dynamic[index] = Tensor(element, {dims.begin(), dims.end()});
    return buffers.dynamic[index].mutable_data();
  });
  const auto prepare_weight = [&](const tessera_buffer& weight) {
    if (weights == Weights::Cold) return evict_from_caches(weight.data, weight.bytes);
    read(weight.data, weight.bytes, pool);
  };
  Stopwatch::Reading reading;
  ContentionProbe::Reading cores;
  pool.execute([&] {
    for (size_t index = 0; index < buffers.inputs.size(); ++index) {
      if (buffers.is_weight[index]) prepare_weight(buffers.inputs[index]);
    }
    displace(pool);
    for (size_t index = 0; index < buffers.inputs.size(); ++index) {
      const tessera_buffer& input = buffers.inputs[index];
      if (!buffers.is_weight[index]) read(input.data, input.bytes, pool);
    }
    gather_threads(pool);
    const Stopwatch watch;
    entry.kernel->run("node", context, buffers.inputs.data(), buffers.outputs.data());
    reading = watch.read();
    cores = probe.read(pool);
  });
  return outcome_of(reading, pool, cores);
}

Outcome GroupBench::State::run_on_device(Entry& entry, ThreadPool& pool) {
  if (!entry.device_buffers) {
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
    for (const CandidateInput& port : entry.candidate.inputs) {
      const Tensor& tensor = value(port.value);
      inputs.push_back(port.pack == nullptr ? tensor : pack(*port.pack, tensor, pool));
    }
    for (const CandidateOutput& port : entry.candidate.outputs) {
      outputs.push_back(value(port.value));
    }
    entry.device_buffers = std::make_unique<DeviceBuffers>(layouts, entry.candidate, *entry.kernel,
                                                           inputs, outputs, pool);
  }
  return {.seconds =
              devices.time_kernel(entry.candidate, *entry.kernel, *entry.device_buffers, pool)};
}

Outcome GroupBench::State::convert(const ConversionKey& key) {
  const std::optional<LayoutId> from = layouts.find(key.from);
  const std::optional<LayoutId> to = layouts.find(key.to);
  const TensorType type{key.element, key.dims};
  std::vector<ConversionStep> route;
  if (from && to && layouts.storage_bytes(*from, type) && layouts.storage_bytes(*to, type)) {
    route = layouts.route(*from, *to, type);
  }
  if (route.size() != 1 || route[0].plugin->name() != key.backend) {
    throw Error(ErrorKind::Unsupported, "conversion",
                "backend '" + key.backend + "' does not convert " + key.from + " to " + key.to);
  }
  if (route[0].device != kHostDevice) {
    return {.seconds = devices.time_conversion(route[0], type, pool_of(key.threads))};
  }
  const int64_t from_bytes = layouts.known_storage_bytes(*from, type);
  const int64_t to_bytes = layouts.known_storage_bytes(*to, type);
  if (conversion != key) {
    conversion_from = zeros(from_bytes);
    conversion_to = zeros(to_bytes);
    conversion = key;
  }
  ThreadPool& pool = pool_of(key.threads);
  RunContext context(pool);
  const tessera_buffer source = to_abi(type, conversion_from.mutable_data(), from_bytes, 0);
  const tessera_buffer target =
      to_abi(type, conversion_to.mutable_data(), to_bytes, TESSERA_REQUEST_WRITE);
  Stopwatch::Reading reading;
  ContentionProbe::Reading cores;
  pool.execute([&] {
    displace(pool);
    read(source.data, source.bytes, pool);
    gather_threads(pool);
    const Stopwatch watch;
    tessera::convert(route[0], "conversion", context, source, target);
    reading = watch.read();
    cores = probe.read(pool);
  });
  return outcome_of(reading, pool, cores);
}

GroupBench::GroupBench(std::vector<std::shared_ptr<const Plugin>> plugins,
                       const ops::Registry& registry, int threads)
    : state_(std::make_unique<State>(std::move(plugins), registry, threads)) {}

GroupBench::~GroupBench() = default;

void GroupBench::guard(StageWatcher watcher) { state_->watcher = std::move(watcher); }

// The values of the group if its inputs are special ones; none if the case has no such inputs.
void GroupBench::State::set_special(const GroupCase& given) {
  special.clear();
  if (given.special_inputs.empty()) return;
  special = expected.values;
  for (size_t index = 0; index < given.special_inputs.size(); ++index) {
    special[at(group.graph.inputs[index])] = given.special_inputs[index];
  }
  for (size_t index = 0; index < given.special_outputs.size(); ++index) {
    special[at(group.graph.outputs[index])] = given.special_outputs[index];
  }
}

void GroupBench::load(const GroupCase& group) {
  TESSERA_CHECK(group.inputs.size() == group.graph.inputs.size() &&
                    group.outputs.size() == group.graph.outputs.size(),
                "a tensor for each input and output of the group");
  state_->entries.clear();
  state_->offered.clear();
  state_->proposed.clear();
  state_->group = group;
  state_->has_group = true;
  if (state_->pools->denormals != group.denormals) {
    const int threads = state_->pools->all.threads();
    state_->pools.emplace(threads, group.denormals);
  }
  const Graph& graph = state_->group.graph;
  verification::ExpectedValues& expected = state_->expected;
  expected.values.assign(graph.values.size(), Tensor());
  expected.magnitudes.assign(graph.values.size(), Tensor());
  expected.limits.assign(graph.values.size(), verification::ErrorLimits());
  for (size_t index = 0; index < graph.values.size(); ++index) {
    if (graph.values[index].is_constant()) expected.values[index] = graph.values[index].constant;
  }
  for (size_t index = 0; index < group.inputs.size(); ++index) {
    expected.values[at(graph.inputs[index])] = group.inputs[index];
  }
  for (size_t index = 0; index < group.outputs.size(); ++index) {
    expected.values[at(graph.outputs[index])] = group.outputs[index];
    if (index < group.magnitudes.size()) {
      expected.magnitudes[at(graph.outputs[index])] = group.magnitudes[index];
    }
    if (index < group.exact.size()) {
      expected.limits[at(graph.outputs[index])] = {group.exact[index], group.spreads[index]};
    }
  }
  state_->set_special(group);
}

void GroupBench::offer(const Candidate& candidate, const Graph& whole) {
  TESSERA_CHECK(state_->has_group, "a group is loaded before candidates of it are offered");
  std::optional<Candidate> moved = translated_to(candidate, whole, state_->group.graph);
  if (!moved) return;
  CandidateId id =
      id_alone(*moved, state_->group.graph, state_->layouts, state_->pools->all.threads());
  state_->offered.emplace_back(std::move(id), *std::move(moved));
}

Outcome GroupBench::build(const CandidateId& id) {
  TESSERA_CHECK(state_->has_group, "a group is loaded before its candidates are built");
  std::optional<Candidate> candidate = state_->find(id);
  if (!candidate) {
    return {.reason = "backend '" + id.backend + "' does not offer it for the group alone",
            .is_unknown = true};
  }
  return attempt([&] {
    Entry entry{.candidate = *std::move(candidate)};
    ThreadPool& pool = state_->pool_of(id.threads);
    state_->enter(BenchStage::Build, entry.candidate.build_seconds);
    const Clock::time_point start = Clock::now();
    pool.execute([&] {
      entry.kernel.emplace(entry.candidate.has_kernel() ? entry.candidate.build(pool.threads())
                                                        : Kernel());
    });
    const double seconds = seconds_since(start);
    state_->entries.erase(id);
    state_->entries.emplace(id, std::move(entry));
    return Outcome{.seconds = seconds};
  });
}

Checked GroupBench::check(const CandidateId& id) {
  Entry& entry = state_->built(id);
  // The offer was checked: its inputs make up its output.
  if (entry.candidate.is_joint()) return {};
  const bool is_on_device = entry.is_on_device();
  // The offer of a view on a device was checked, too; it runs nothing.
  if (is_on_device && !entry.candidate.has_kernel()) return {};
  verification::Report report;
  const auto watcher = [&](bool is_running) {
    state_->enter(is_running ? BenchStage::Run : BenchStage::Prepare);
  };
  const std::vector<Tensor>* special = state_->special.empty() ? nullptr : &state_->special;
  // The kernel stays with the entry.
  const std::shared_ptr<const Kernel> built(std::shared_ptr<const Kernel>(), &*entry.kernel);
  const Candidate on_host = hosted(entry.candidate, state_->layouts);
  std::optional<Kernel> hosted_kernel;
  if (is_on_device) hosted_kernel.emplace(hosted(built, entry.candidate, state_->layouts));
  // Buffers of an earlier run may refer to the packs of an earlier check.
  entry.buffers.reset();
  entry.packs.clear();
  const verification::CandidateTrial trial{
      .expected = state_->expected,
      .layouts = state_->layouts,
      .candidate = on_host,
      .pool = state_->pool_of(id.threads),
      .location = "",
      .precision = state_->group.precision,
      .judge = state_->group.judge,
      .ulps = verification::ulps_of(state_->group.graph, state_->registry).value_or(0),
      .special_ulps = verification::ulps_of_special_values(state_->group.graph, state_->registry),
      .special = special,
      .special_kinds = verification::special_values_for(state_->group.graph, state_->registry),
      .pages = state_->watcher ? &state_->guard_pages : nullptr,
      .packs = &entry.packs,
      .run_watcher = watcher};
  verification::NumberCheck numbers;
  try {
    numbers =
        verification::check_kernel(trial, is_on_device ? *hosted_kernel : *entry.kernel, report);
  } catch (const std::bad_alloc&) {
    return {.reason = "there was not enough memory to check it"};
  }
  Checked checked{.error = numbers.error, .tolerance = numbers.tolerance};
  if (!report.failures().empty()) {
    const verification::Failure& failure = report.failures().front();
    checked.reason = failure.check + ": " + failure.message;
  }
  return checked;
}

Outcome GroupBench::run(const CandidateId& id, Weights weights, int runs) {
  Entry& entry = state_->built(id);
  ThreadPool& pool = state_->pool_of(id.threads);
  const auto run_once = [&] {
    // Without a kernel, outputs share the memory of inputs, or vice versa.
    if (!entry.candidate.has_kernel()) return Outcome();
    if (entry.is_on_device()) {
      state_->enter(BenchStage::Run);
      return state_->run_on_device(entry, pool);
    }
    if (!entry.buffers) entry.buffers = state_->make_buffers(entry, pool);
    state_->enter(BenchStage::Run);
    return state_->run(entry, weights, pool);
  };
  return attempt([&] { return fastest_of(runs, run_once); });
}

void GroupBench::drop(const CandidateId& id) { state_->entries.erase(id); }

Outcome GroupBench::convert(const ConversionKey& key, int runs) {
  const auto convert_once = [&] {
    state_->enter(BenchStage::Run);
    return state_->convert(key);
  };
  return attempt([&] { return fastest_of(runs, convert_once); });
}

}  // namespace tessera::tuning
