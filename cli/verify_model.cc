#include "cli/verify_model.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string_view>

#include "cli/costs_report.h"
#include "cli/plan_json.h"
#include "cli/plan_summary.h"
#include "cli/quantities.h"
#include "cli/text_table.h"

namespace tessera::cli {
namespace {

// The backend that all others are compared with.
constexpr std::string_view kReference = "reference";

// The verdicts on one backend's candidates for one op or group.
struct VerdictCount {
  int fine = 0;
  int refused = 0;
  int unchecked = 0;
  double error = 0;  // the largest error found
  double tolerance = 0;
};

std::string error_text(double error) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1e", error);
  return error == 0 ? "0" : text.data();
}

std::string verification_text(const ModelVerification& verification, const TextStyle& style) {
  std::map<std::pair<std::string, std::string>, VerdictCount> counts;
  for (const CandidateDescription& candidate : verification.candidates) {
    if (candidate.backend == kReference) continue;
    VerdictCount& count = counts[{candidate.backend, candidate.op}];
    const bool is_checked =
        candidate.verdict == Verdict::Fine || candidate.verdict == Verdict::Refused;
    if (!is_checked) ++count.unchecked;
    if (candidate.verdict == Verdict::Refused) ++count.refused;
    if (candidate.verdict == Verdict::Fine) ++count.fine;
    if (candidate.error >= count.error) {
      count.error = candidate.error;
      count.tolerance = candidate.tolerance;
    }
  }
  TextTable table({{"backend"},
                   {"op", Align::Left, true},
                   {"passed", Align::Right},
                   {"failed", Align::Right},
                   {"not checked", Align::Right},
                   {"max diff", Align::Right},
                   {"tolerance", Align::Right}});
  for (const auto& [key, count] : counts) {
    const bool is_checked = count.fine + count.refused > 0;
    table.add_row({key.first, op_text(key.second, style), std::to_string(count.fine),
                   std::to_string(count.refused), std::to_string(count.unchecked),
                   is_checked ? error_text(count.error) : "-",
                   is_checked ? error_text(count.tolerance) : "-"});
  }
  std::string text = table.text(style);
  if (verification.tuning.is_stopped) text += "stopped early: not all candidates were checked\n";
  for (const std::string& note : verification.tuning.notes) text += wrapped("note: " + note, style);
  const std::string refused = refused_text(verification.candidates, style);
  text += refused.empty() ? "" : "\n" + refused;
  int64_t passed = 0;
  int64_t failed = 0;
  int64_t unchecked = 0;
  for (const auto& [key, count] : counts) {
    passed += count.fine;
    failed += count.refused;
    unchecked += count.unchecked;
  }
  if (passed + failed == 0) {
    const std::string why =
        unchecked == 0 ? "no backend but the reference offers a kernel"
                       : count_text(unchecked, "kernel was", "kernels were") + " not checked";
    return text + wrapped("nothing was compared: " + why, style);
  }
  return text + "\n" +
         wrapped((failed == 0
                      ? count_text(passed, "kernel agrees", "kernels agree") + " with the reference"
                      : count_text(failed, "kernel", "kernels") + " FAILED, " +
                            std::to_string(passed) + " agree with the reference") +
                     "; equal ones were run once" +
                     (unchecked == 0 ? "" : "; " + std::to_string(unchecked) + " were not checked"),
                 style);
}

Json verification_json(const std::string& model, const ModelVerification& verification) {
  return {{"model", model},
          {"is_stopped", verification.tuning.is_stopped},
          {"notes", verification.tuning.notes},
          {"candidates", to_json(verification.candidates)}};
}

}  // namespace

CommandResult verify_model(const ModelArguments& arguments, bool is_json) {
  const ModelRequest request(arguments, MissingInputs::AreRandom);
  const LoadedModel loaded = request.load(Clock::now(), /*keeps_all_values=*/false);
  const ModelVerification verification = request.verify(loaded);
  const auto is_any = [&](Verdict verdict) {
    return std::any_of(verification.candidates.begin(), verification.candidates.end(),
                       [&](const CandidateDescription& each) {
                         return each.backend != kReference && each.verdict == verdict;
                       });
  };
  const bool is_nothing_compared = is_any(Verdict::NotMeasured) && !is_any(Verdict::Fine);
  const bool has_failed =
      is_any(Verdict::Refused) || is_any(Verdict::NotBuilt) || is_nothing_compared;
  return {has_failed ? kAnswerIsNo : kFine,
          is_json ? json_text(verification_json(loaded.description.file, verification))
                  : verification_text(verification, stdout_style())};
}

}  // namespace tessera::cli
