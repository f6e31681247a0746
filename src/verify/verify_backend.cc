#include "verify/verify_backend.h"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "backend/device_memory/hosted_kernel.h"
#include "backend/graph_view.h"
#include "backend/node_kernel.h"
#include "backend/plugin.h"
#include "backend/plugin_ops/plugin_ops.h"
#include "ops/registry.h"
#include "tessera/error.h"
#include "verify/check_candidate.h"
#include "verify/check_layouts.h"
#include "verify/op_case.h"
#include "verify/random_tensor.h"

namespace tessera::verification {
namespace {

class BackendVerifier {
 public:
  BackendVerifier(std::shared_ptr<const Plugin> plugin, const VerifyOptions& options,
                  VerifySteps& steps, Report& report)
      : plugin_(std::move(plugin)),
        layouts_(std::span(&plugin_, 1)),
        options_(options),
        steps_(steps),
        report_(report),
        registry_(ops::make_registry()) {
    for (ops::Op& op : make_ops(plugin_->abi(), plugin_)) {
      own_ops_.push_back(op);
      registry_.add(std::move(op));
    }
  }

  void check_all() {
    check_layouts(plugin_, options_.seed, steps_, report_);
    std::map<std::string, int> case_counts;
    for (const char* text : case_table()) case_counts[ops_of(text)] += options_.cases;
    std::map<std::string, int> tried;
    for (int round = 0; round < options_.cases; ++round) {
      const uint64_t seed = options_.seed + static_cast<uint64_t>(round);
      for (const char* text : case_table()) {
        const std::string op = ops_of(text);
        if (!steps_.begin_unit("op " + op, ++tried[op], case_counts[op], report_)) continue;
        check_case(read_op_case(text, registry_, seed));
      }
      for (const ops::Op& op : own_ops_) check_own_op(op, round, seed);
    }
    steps_.end_units();
  }

 private:
  void check_own_op(const ops::Op& op, int round, uint64_t seed) {
    bool is_tried = false;
    const std::vector<std::string> texts = cases_for(op);
    const auto count = static_cast<int>(texts.size());
    int number = round * count;
    for (const std::string& text : texts) {
      if (!steps_.begin_unit("op " + ops_of(text), ++number, count * options_.cases, report_)) {
        is_tried = true;  // by another process
        continue;
      }
      steps_.report("own ops: type rules", text);
      std::optional<OpCase> op_case;
      try {
        op_case = read_op_case(text, registry_, seed);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::DeviceFailed) {
          report_.fail("own ops: type rules", text, error.message());
        }
        continue;
      }
      report_.pass("own ops: type rules");
      is_tried = true;
      if (!op.kernel) continue;
      check_reference(*op_case);
      check_case(*op_case);
    }
    if (!is_tried) report_.skip("own ops: type rules");
    if (!op.kernel && steps_.is_first_process()) report_.skip("own ops: references");
  }

  // Checks the plug-in's own reference kernel as if it were a candidate.
  void check_reference(const OpCase& op_case) {
    const tessera_graph view(op_case.graph, registry_);
    const Node& node = op_case.graph.nodes[0];
    Candidate candidate;
    candidate.plugin = plugin_;
    candidate.nodes = {NodeId{0}};
    for (const ValueId input : node.inputs) candidate.inputs.push_back({input, kDefaultLayout});
    for (const ValueId output : node.outputs) {
      const bool is_unknown = !known_type(op_case.graph[output].type);
      candidate.outputs.push_back(
          {.value = output, .layout = kDefaultLayout, .is_size_unknown = is_unknown});
    }
    candidate.build = [&](int) {
      return Kernel(make_reference_kernel(view, NodeId{0}), plugin_->name());
    };
    try_candidates(op_case, std::span(&candidate, 1), "its reference");
  }

  void check_case(const OpCase& op_case) {
    ++report_.op(op_case.op).cases;
    const tessera_graph view(op_case.graph, registry_);
    for (const int threads : {1, 2}) {
      steps_.report("legal offers", op_case.text + threads_text(threads));
      const Offers offers =
          collect_offers(view, std::span(&plugin_, 1), layouts_, {.threads = threads});
      threads_ = threads;
      check_offers(op_case, offers, /*counts=*/threads == 1);
    }
  }

  static std::string threads_text(int threads) {
    return threads == 1 ? ", 1 thread" : ", 2 threads";
  }

  void check_offers(const OpCase& op_case, const Offers& offers, bool counts) {
    OpCount& count = report_.op(op_case.op);
    for (const Refusal& refusal : offers.refusals) {
      const bool is_broken = refusal.reason.find("is not legal") != std::string::npos ||
                             refusal.reason.starts_with("it failed to propose");
      if (is_broken) report_.fail("legal offers", op_case.text, refusal.reason);
      if (counts && count.refusal.empty()) count.refusal = refusal.reason;
    }
    if (counts && !offers.candidates.empty()) {
      ++count.accepted;
      count.candidates += static_cast<int64_t>(offers.candidates.size());
    }
    try_candidates(op_case, offers.candidates, "candidate");
  }

  // nullopt if the reference fails; for a plug-in's own op, that is the plug-in's code.
  std::optional<ExpectedValues> values_of(const OpCase& op_case, ThreadPool& pool) {
    const bool is_own = !op_case.graph.nodes[0].domain.empty();
    if (!is_own) return expected_values(op_case, registry_, pool);
    steps_.report("own ops: references", op_case.text);
    try {
      ExpectedValues expected = expected_values(op_case, registry_, pool);
      report_.pass("own ops: references");
      return expected;
    } catch (const Error& error) {
      report_.fail("own ops: references", op_case.text, error.message());
      return std::nullopt;
    }
  }

  // For inputs of other ranges, as far as there are limits for them.
  std::vector<ExpectedValues> other_values_of(const OpCase& op_case, ThreadPool& pool) {
    std::vector<ExpectedValues> others;
    for (const ValueRange range : {ValueRange::Tails, ValueRange::LargeMean}) {
      OpCase other = op_case;
      bool is_other = false;
      for (size_t index = 0; index < other.inputs.size(); ++index) {
        Tensor changed = in_range(op_case.inputs[index], range, options_.seed + index);
        if (changed.is_empty()) continue;
        other.inputs[index] = std::move(changed);
        is_other = true;
      }
      if (!is_other) continue;
      try {
        ExpectedValues values = expected_values(other, registry_, pool);
        if (!values.limits.empty()) others.push_back(std::move(values));
      } catch (const Error&) {
        continue;  // the reference does not accept such inputs
      }
    }
    return others;
  }

  void try_candidates(const OpCase& op_case, std::span<const Candidate> candidates,
                      const std::string& what) {
    if (candidates.empty()) return;
    // The rule of a bind without a setting for denormals.
    const ScopedDenormals rule(Denormals::Flush);
    ThreadPool pool(1, Denormals::Flush);
    ThreadPool candidates_pool(threads_, Denormals::Flush);
    const std::optional<ExpectedValues> expected = values_of(op_case, pool);
    if (!expected) return;
    const std::vector<Tensor> special = special_values_of(op_case, registry_, pool);
    const std::vector<ExpectedValues> others = other_values_of(op_case, pool);
    std::vector<const ExpectedValues*> pointers;
    for (const ExpectedValues& values : others) pointers.push_back(&values);
    for (const Candidate& candidate : candidates) {
      const bool is_on_device = candidate.device != kHostDevice;
      // A view on a device runs nothing; its position was checked when it was offered.
      if (is_on_device && !candidate.has_kernel()) continue;
      std::string location = op_case.text + ", " + what;
      if (!candidate.algorithm.empty()) location += " '" + candidate.algorithm + "'";
      for (const CandidateOutput& output : candidate.outputs) {
        if (output.layout != kDefaultLayout) location += ", " + layouts_.name(output.layout);
      }
      location += threads_text(threads_);
      report_.pass("legal offers");
      const auto report = [&](const std::string& check) { steps_.report(check, location); };
      check_candidate({.expected = *expected,
                       .layouts = layouts_,
                       .candidate = hosted(candidate, layouts_),
                       .pool = candidates_pool,
                       .location = location,
                       .special_ulps = ulps_of_special_values(op_case.graph, registry_),
                       .special = special.empty() ? nullptr : &special,
                       .special_kinds = special_values_for(op_case.graph, registry_),
                       .others = pointers,
                       .step_watcher = report},
                      report_);
    }
  }

  std::shared_ptr<const Plugin> plugin_;
  LayoutTable layouts_;
  const VerifyOptions& options_;
  VerifySteps& steps_;
  Report& report_;
  ops::Registry registry_;
  std::vector<ops::Op> own_ops_;
  int threads_ = 1;
};

}  // namespace

void check_is_file(const std::filesystem::path& library) {
  std::error_code error;
  if (std::filesystem::is_regular_file(library, error)) return;
  throw Error(ErrorKind::InvalidArgument, "plug-in '" + library.string() + "'",
              "there is no such file");
}

VerifiedBackend verify_backend(const std::filesystem::path& library, const VerifyOptions& options,
                               const VerifyWatcher& watcher) {
  check_is_file(library);
  VerifiedBackend verified;
  VerifySteps steps(options.first_unit, options.passed_over, [&](const VerifyStep& step) {
    if (watcher) watcher(step, verified);
  });
  const auto services = std::make_shared<HostServices>([](const std::string&) {});
  steps.report("opens", library.filename().string());
  std::shared_ptr<const Plugin> plugin;
  try {
    plugin = Plugin::open(std::filesystem::absolute(library), services);
  } catch (const Error& failure) {
    verified.report.fail("opens", failure.where(), failure.message());
    return verified;
  }
  if (steps.is_first_process()) verified.report.pass("opens");
  verified.name = plugin->name();
  verified.version = plugin->version();
  try {
    BackendVerifier(plugin, options, steps, verified.report).check_all();
  } catch (const Error& failure) {
    verified.report.fail(steps.newest().check, steps.newest().detail,
                         failure.where() + ": " + failure.message());
  }
  steps.report("closes", library.filename().string());
  plugin.reset();
  verified.report.pass("closes");
  return verified;
}

}  // namespace tessera::verification
