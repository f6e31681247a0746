#include "verify/check_candidate.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "backend/contract/run_context.h"
#include "backend/contract/status.h"
#include "tessera/error.h"
#include "verify/candidate_inputs.h"
#include "verify/stored_tensor.h"

namespace tessera::verification {
namespace {

// How a run requests the output that supports in-place or accumulation.
struct Request {
  int32_t kind = TESSERA_REQUEST_WRITE;
  size_t output = 0;
  // Whether the output uses the memory of its in-place input or, for ADD, a copy of its contents.
  bool is_shared = true;
  // Whether buffers of ports that accept strides are strided.
  bool has_strides = false;
};

// The results of a run, in the order of the candidate's ports.
struct Outcome {
  std::vector<Tensor> outputs;             // row-major
  std::vector<std::vector<char>> storage;  // bytes of the outputs
};

class CandidateChecker {
 public:
  CandidateChecker(const CandidateTrial& trial, Report& report)
      : trial_(trial), candidate_(trial.candidate), report_(report), pool_(trial.pool) {}

  void check() {
    if (!candidate_.has_kernel()) return check_view(trial_, pool_, report_);
    if (!make_inputs()) return;
    const std::optional<Kernel> kernel = build();
    if (!kernel) return;
    if (const std::optional<Outcome> first = check_runs(*kernel)) check_saved(*kernel, *first);
  }

  void check_built(const Kernel& kernel) {
    if (!candidate_.has_kernel()) return check_view(trial_, pool_, report_);
    if (make_inputs()) check_runs(kernel);
  }

  const NumberCheck& numbers() const { return numbers_; }

 private:
  void report(const std::string& check) const {
    if (trial_.step_watcher) trial_.step_watcher(check);
  }

  bool is_deterministic() const {
    return (candidate_.flags & TESSERA_CANDIDATE_NOT_DETERMINISTIC) == 0;
  }

  // The results of the first run; nullopt if it failed.
  std::optional<Outcome> check_runs(const Kernel& kernel) {
    std::optional<Outcome> first = run(kernel, plain_request(), kGarbage);
    if (!first) return std::nullopt;
    compare("numbers", *first);
    if (!is_deterministic()) {
      report_.skip("the same twice");
    } else if (const std::optional<Outcome> second = run(kernel, plain_request(), 0x5A)) {
      // The second run uses buffers with other initial contents, so unwritten elements differ.
      expect_equal("the same twice", *first, *second);
    }
    for (size_t output = 0; output < candidate_.outputs.size(); ++output) {
      for (const int32_t kind : {TESSERA_REQUEST_IN_PLACE, TESSERA_REQUEST_ADD}) {
        if ((candidate_.outputs[output].requests & static_cast<uint32_t>(kind)) == 0) continue;
        check_sharing(kernel, {kind, output, true}, *first);
        if (kind == TESSERA_REQUEST_ADD) check_sharing(kernel, {kind, output, false}, *first);
      }
    }
    check_strides(kernel, *first);
    if (trial_.special != nullptr && takes_other_values()) check_special_values(kernel);
    if (takes_other_values()) {
      for (const ExpectedValues* values : trial_.others) check_other_values(kernel, *values);
    }
    return first;
  }

  bool takes_other_values() const {
    const auto is_sparse = [&](const auto& port) {
      return trial_.layouts.sparse_form(port.layout).has_value();
    };
    return std::none_of(candidate_.inputs.begin(), candidate_.inputs.end(), is_sparse) &&
           std::none_of(candidate_.outputs.begin(), candidate_.outputs.end(), is_sparse) &&
           std::none_of(candidate_.outputs.begin(), candidate_.outputs.end(),
                        [](const auto& port) { return port.is_size_unknown; });
  }

  // A trial of the same candidate on other values.
  CandidateTrial trial_on(const ExpectedValues& values) const {
    return {.expected = values,
            .layouts = trial_.layouts,
            .candidate = candidate_,
            .pool = pool_,
            .location = trial_.location,
            .precision = trial_.precision,
            .judge = trial_.judge,
            .ulps = trial_.ulps,
            .pages = trial_.pages,
            .packs = nullptr,
            .run_watcher = trial_.run_watcher,
            .step_watcher = trial_.step_watcher};
  }

  void check_other_values(const Kernel& kernel, const ExpectedValues& values) {
    const CandidateTrial trial = trial_on(values);
    CandidateChecker other(trial, report_);
    report("other values");
    other.inputs_.emplace(trial, report_, &*inputs_);
    const std::optional<Outcome> outcome = other.run(kernel, plain_request(), kGarbage);
    if (outcome) other.compare("other values", *outcome);
  }

  void check_special_values(const Kernel& kernel) {
    const ExpectedValues values{.values = *trial_.special, .magnitudes = {}, .limits = {}};
    const CandidateTrial trial = trial_on(values);
    CandidateChecker special(trial, report_);
    // NaN times the zeros that pad weights is NaN, so only finite runs can judge padding.
    special.checks_padding_ = false;
    report("special values");
    special.inputs_.emplace(trial, report_, &*inputs_);
    const std::optional<Outcome> outcome = special.run(kernel, plain_request(), kGarbage);
    if (!outcome) return;
    const bool may_spread = (candidate_.flags & TESSERA_CANDIDATE_SPREADS_NAN) != 0;
    for (size_t index = 0; index < outcome->outputs.size(); ++index) {
      const ValueId id = candidate_.outputs[index].value;
      report_.expect("special values", trial_.location,
                     explain_lost_special(
                         {expected(id), magnitude(id), special.expected(id), trial_.special_kinds,
                          trial_.judge == Judge::Wide ? std::nullopt : trial_.special_ulps},
                         outcome->outputs[index], may_spread, trial_.precision));
    }
  }

  // Write; for a kernel that can only accumulate, accumulate into a copy of its input.
  Request plain_request() const {
    for (size_t output = 0; output < candidate_.outputs.size(); ++output) {
      const uint32_t requests = candidate_.outputs[output].requests;
      const bool only_adds =
          (requests & TESSERA_REQUEST_WRITE) == 0 && (requests & TESSERA_REQUEST_ADD) != 0;
      if (only_adds) return {TESSERA_REQUEST_ADD, output, false};
    }
    return {};
  }

  const Tensor& expected(ValueId id) const {
    return trial_.expected.values[static_cast<size_t>(id.index)];
  }
  const Tensor& magnitude(ValueId id) const {
    return trial_.expected.magnitudes[static_cast<size_t>(id.index)];
  }

  // Makes the inputs in the form that the candidate wants; false on failure.
  bool make_inputs() {
    report("inputs: converted and packed");
    try {
      inputs_.emplace(trial_, report_);
    } catch (const Error& error) {
      report_.fail("inputs: converted and packed", trial_.location, error.message());
      return false;
    }
    return true;
  }

  std::optional<Kernel> build() {
    std::optional<Kernel> kernel;
    std::string reason;
    report("builds what it offers");
    pool_.execute([&] {
      try {
        kernel.emplace(candidate_.build(pool_.threads()));
      } catch (const Error& error) {
        reason = error.message();
      }
    });
    report_.expect("builds what it offers", trial_.location, reason);
    return kernel;
  }

  // The buffers of one run. An output that shares memory with an input uses that input's buffer.
  struct Buffers {
    std::vector<RunInput> inputs;
    std::vector<std::optional<StoredTensor>> outputs;  // nullopt: size not known yet
    int shared_input = -1;
  };

  // The host allocates packs, so they are aligned; a tensor may be part of another one.
  InputUse use_of(size_t input, const Request& request, uint8_t fill) const {
    const CandidateInput& port = candidate_.inputs[input];
    InputUse use{
        .has_strides = request.has_strides,
        .alignment_bytes = port.pack != nullptr ? TESSERA_ALIGNMENT_BYTES : port.alignment_bytes,
        .fill = fill};
    if (request.kind == TESSERA_REQUEST_WRITE) return use;
    const CandidateOutput& output = candidate_.outputs[request.output];
    use.is_written = output.in_place_input == static_cast<int>(input);
    if (use.is_written) use.alignment_bytes = std::max(use.alignment_bytes, output.alignment_bytes);
    return use;
  }

  Buffers make_buffers(const Request& request, uint8_t fill) {
    Buffers buffers;
    for (size_t index = 0; index < candidate_.inputs.size(); ++index) {
      buffers.inputs.push_back(inputs_->for_run(index, use_of(index, request, fill)));
    }
    for (size_t index = 0; index < candidate_.outputs.size(); ++index) {
      const CandidateOutput& port = candidate_.outputs[index];
      if (port.is_size_unknown) {
        buffers.outputs.emplace_back();
        continue;
      }
      StoredTensor output = make_storage(trial_.layouts, port.layout, type_of(expected(port.value)),
                                         fill, port.alignment_bytes, trial_.pages);
      if (request.has_strides && port.accepts_strides) {
        output = spread(trial_.layouts, output, fill, port.alignment_bytes).value_or(output);
      }
      if (request.kind != TESSERA_REQUEST_WRITE && request.output == index) {
        const StoredTensor& input = buffers.inputs[static_cast<size_t>(port.in_place_input)].stored;
        if (request.is_shared) {
          buffers.shared_input = port.in_place_input;
          output.memory = input.memory;
        } else {
          std::memcpy(output.memory->data(), input.memory->data(),
                      static_cast<size_t>(output.memory->bytes()));
        }
      }
      buffers.outputs.emplace_back(std::move(output));
    }
    return buffers;
  }

  static tessera_buffer buffer_of_unknown_size(DataType type, int32_t request) {
    tessera_buffer buffer = {};
    buffer.rank = -1;
    buffer.request = request;
    buffer.data_type = static_cast<int32_t>(type);
    return buffer;
  }

  // Calls the kernel; "" or the reason of its failure.
  std::string call(const Kernel& kernel, const Request& request, Buffers& buffers,
                   GuardedMemory& workspace) {
    std::vector<tessera_buffer> inputs;
    std::vector<tessera_buffer> outputs;
    for (const RunInput& input : buffers.inputs) inputs.push_back(input.stored.abi());
    for (size_t index = 0; index < buffers.outputs.size(); ++index) {
      const bool is_asked = request.kind != TESSERA_REQUEST_WRITE && request.output == index;
      const int32_t kind = is_asked ? request.kind : int32_t{TESSERA_REQUEST_WRITE};
      if (buffers.outputs[index]) {
        outputs.push_back(buffers.outputs[index]->abi(kind));
        continue;
      }
      outputs.push_back(
          buffer_of_unknown_size(expected(candidate_.outputs[index].value).type(), kind));
    }
    RunContext context(pool_);
    context.set_workspace(workspace.data(), workspace.bytes());
    context.set_allocator([&](int32_t output, std::span<const int64_t> dims) -> void* {
      const auto index = static_cast<size_t>(output);
      if (output < 0 || index >= buffers.outputs.size() || buffers.outputs[index]) return nullptr;
      const TensorType type = {expected(candidate_.outputs[index].value).type(),
                               {dims.begin(), dims.end()}};
      buffers.outputs[index] = make_storage(trial_.layouts, kDefaultLayout, type, kGarbage,
                                            TESSERA_ALIGNMENT_BYTES, trial_.pages);
      return buffers.outputs[index]->memory->data();
    });
    std::string failure;
    report("runs");
    if (trial_.run_watcher) trial_.run_watcher(true);
    pool_.execute([&] {
      try {
        kernel.run("node", context, inputs.data(), outputs.data());
      } catch (const Error& error) {
        failure = error.message();
      }
    });
    if (trial_.run_watcher) trial_.run_watcher(false);
    return failure;
  }

  // nullopt if it failed or wrote where it must not; either is reported.
  std::optional<Outcome> run(const Kernel& kernel, const Request& request, uint8_t fill) {
    Buffers buffers = make_buffers(request, fill);
    GuardedMemory workspace(kernel.workspace_bytes(), TESSERA_ALIGNMENT_BYTES, fill, trial_.pages);
    const std::string failure = call(kernel, request, buffers, workspace);
    report_.expect("runs", trial_.location, failure);
    if (!failure.empty()) return std::nullopt;
    if (!is_harmless(buffers, workspace)) return std::nullopt;
    Outcome outcome;
    for (size_t index = 0; index < buffers.outputs.size(); ++index) {
      if (!buffers.outputs[index]) {
        report_.fail("runs", trial_.location,
                     "it asks for no memory for an output of unknown size");
        return std::nullopt;
      }
      StoredTensor output = *buffers.outputs[index];
      if (!output.strides.empty()) {
        report_.expect("guard bytes", trial_.location,
                       has_gaps_of(trial_.layouts, output, fill)
                           ? ""
                           : "output " + std::to_string(index) + ": it writes between its rows");
        output = gathered(trial_.layouts, output);
      }
      if (checks_padding_) check_padding(candidate_.outputs[index], output);
      outcome.storage.emplace_back(output.memory->contents().begin(),
                                   output.memory->contents().end());
      outcome.outputs.push_back(
          read_row_major(to_layout(trial_.layouts, kDefaultLayout, output, pool_)));
    }
    return outcome;
  }

  bool is_harmless(const Buffers& buffers, const GuardedMemory& workspace) {
    std::string damage;
    for (size_t index = 0; index < buffers.inputs.size(); ++index) {
      const std::string harm = buffers.inputs[index].stored.memory->explain_damage();
      if (!harm.empty()) damage = "input " + std::to_string(index) + ": " + harm;
    }
    for (size_t index = 0; index < buffers.outputs.size(); ++index) {
      if (!buffers.outputs[index]) continue;
      const std::string harm = buffers.outputs[index]->memory->explain_damage();
      if (!harm.empty()) damage = "output " + std::to_string(index) + ": " + harm;
    }
    report_.expect("guard bytes", trial_.location, damage);
    const std::string overrun = workspace.explain_damage();
    report_.expect("workspace", trial_.location, overrun);
    std::string changed;
    for (size_t index = 0; index < buffers.inputs.size(); ++index) {
      if (static_cast<int>(index) == buffers.shared_input) continue;
      const std::string difference = buffers.inputs[index].explain_change();
      if (!difference.empty()) changed = "input " + std::to_string(index) + ": " + difference;
    }
    report_.expect("inputs unchanged", trial_.location, changed);
    return damage.empty() && overrun.empty() && changed.empty();
  }

  void check_padding(const CandidateOutput& port, const StoredTensor& output) {
    if (port.layout == kDefaultLayout || !trial_.layouts.is_dense(port.layout)) return;
    const bool has_padding =
        output.memory->bytes() != tensor_bytes(output.type.element, output.type.dims);
    if (!has_padding) return report_.pass("padding is zero");
    report_.expect(
        "padding is zero", trial_.location,
        explain_padding(output, padding_of(trial_.layouts, port.layout, output.type, pool_)));
  }

  Difference judged(ValueId id, const Tensor& found) const {
    const auto at = static_cast<size_t>(id.index);
    const std::vector<ErrorLimits>& limits = trial_.expected.limits;
    if (trial_.judge == Judge::Ulps) return measure_ulps(expected(id), trial_.ulps, found);
    if (trial_.judge == Judge::Limits && at < limits.size() && limits[at].is_known()) {
      return measure_excess(expected(id), limits[at], found);
    }
    return measure_difference(expected(id), magnitude(id), found, trial_.precision);
  }

  void compare(const std::string& check, const Outcome& outcome) {
    for (size_t index = 0; index < outcome.outputs.size(); ++index) {
      const ValueId id = candidate_.outputs[index].value;
      const Difference difference = judged(id, outcome.outputs[index]);
      // The worst output is the one with the largest ratio of error to tolerance.
      const bool is_worse = difference.error * std::max(numbers_.tolerance, 1e-30) >
                            numbers_.error * std::max(difference.tolerance, 1e-30);
      if (is_worse || numbers_.tolerance == 0) {
        numbers_ = {difference.error, difference.tolerance};
      }
      report_.expect(check, trial_.location, difference.text);
    }
  }

  void expect_equal(const std::string& check, const Outcome& first, const Outcome& second) {
    std::string wrong;
    for (size_t index = 0; index < first.outputs.size(); ++index) {
      const std::string difference =
          explain_byte_difference(first.storage[index], second.storage[index]);
      if (!difference.empty()) wrong = "output " + std::to_string(index) + ": " + difference;
    }
    report_.expect(check, trial_.location, wrong);
  }

  // Runs with buffers that are parts of larger ones, if ports accept strides.
  void check_strides(const Kernel& kernel, const Outcome& dense) {
    const auto accepts = [](const auto& port) { return port.accepts_strides; };
    if (std::none_of(candidate_.inputs.begin(), candidate_.inputs.end(), accepts) &&
        std::none_of(candidate_.outputs.begin(), candidate_.outputs.end(), accepts)) {
      return;
    }
    Request request = plain_request();
    if (request.kind != TESSERA_REQUEST_WRITE) return report_.skip("strides");
    request.has_strides = true;
    const std::optional<Outcome> outcome = run(kernel, request, kGarbage);
    if (outcome && dense.outputs.size() == outcome->outputs.size()) compare("strides", *outcome);
  }

  // Runs with an output in the memory of an input.
  void check_sharing(const Kernel& kernel, const Request& request, const Outcome& apart) {
    const bool is_add = request.kind == TESSERA_REQUEST_ADD;
    const std::string check = is_add ? "adding" : "in place";
    const CandidateOutput& output = candidate_.outputs[request.output];
    const auto input = static_cast<size_t>(output.in_place_input);
    const std::optional<int64_t> bytes =
        trial_.layouts.storage_bytes(output.layout, type_of(expected(output.value)));
    // The host shares memory only if the sizes match and nothing else uses the input.
    if (candidate_.inputs[input].pack != nullptr || !bytes || *bytes != inputs_->bytes(input)) {
      return report_.skip(check);
    }
    const std::optional<Outcome> shared = run(kernel, request, kGarbage);
    if (!shared) return;
    if (is_deterministic() && !is_add) {
      expect_equal(check, apart, *shared);
    } else {
      compare(check, *shared);
    }
  }

  void check_saved(const Kernel& kernel, const Outcome& first) {
    if (!kernel.can_be_saved() || !candidate_.load) return report_.skip("saved kernels");
    std::shared_ptr<const std::string> bytes;
    report("saved kernels");
    try {
      bytes = std::make_shared<const std::string>(kernel.save());
    } catch (const Error& error) {
      // A kernel may answer that it, in particular, cannot be saved.
      if (error.kind() == ErrorKind::Unsupported) return report_.skip("saved kernels");
      return report_.fail("saved kernels", trial_.location, error.message());
    }
    Kernel again;
    try {
      again = candidate_.load({bytes, bytes->data()}, static_cast<int64_t>(bytes->size()));
    } catch (const Error& error) {
      return report_.fail("saved kernels", trial_.location, error.message());
    }
    const std::optional<Outcome> outcome = run(again, plain_request(), kGarbage);
    if (!outcome) return;
    if (is_deterministic()) {
      expect_equal("saved kernels", first, *outcome);
    } else {
      compare("saved kernels", *outcome);
    }
  }

  const CandidateTrial& trial_;
  const Candidate& candidate_;
  Report& report_;
  ThreadPool& pool_;
  bool checks_padding_ = true;
  NumberCheck numbers_;
  std::optional<CandidateInputs> inputs_;
};

}  // namespace

NumberCheck check_candidate(const CandidateTrial& trial, Report& report) {
  CandidateChecker checker(trial, report);
  try {
    checker.check();
  } catch (const Error& error) {
    report.fail("runs", trial.location, error.message());
  }
  return checker.numbers();
}

NumberCheck check_kernel(const CandidateTrial& trial, const Kernel& kernel, Report& report) {
  CandidateChecker checker(trial, report);
  try {
    checker.check_built(kernel);
  } catch (const Error& error) {
    report.fail("runs", trial.location, error.message());
  }
  return checker.numbers();
}

}  // namespace tessera::verification
