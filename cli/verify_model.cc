#include "cli/verify_model.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "cli/costs_report.h"
#include "cli/json_output.h"
#include "cli/text_table.h"

namespace tessera::cli {
namespace {

// What the candidates of one backend for one op or group came to.
struct VerdictCount {
  int fine = 0;
  int refused = 0;
  int unchecked = 0;
  double error = 0;  // the largest one that was found
  double tolerance = 0;
};

std::string error_text(double error) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1e", error);
  return error == 0 ? "0" : text.data();
}

std::string verification_text(const ModelVerification& verification) {
  std::map<std::pair<std::string, std::string>, VerdictCount> counts;
  for (const CandidateDescription& candidate : verification.candidates) {
    VerdictCount& count = counts[{candidate.backend, candidate.op}];
    if (candidate.verdict == Verdict::NotMeasured) ++count.unchecked;
    if (candidate.verdict == Verdict::Refused) ++count.refused;
    if (candidate.verdict == Verdict::Fine) ++count.fine;
    if (candidate.error >= count.error) {
      count.error = candidate.error;
      count.tolerance = candidate.tolerance;
    }
  }
  TextTable table({{"backend"},
                   {"op", Align::Left, true},
                   {"fine", Align::Right},
                   {"refused", Align::Right},
                   {"not checked", Align::Right},
                   {"largest error", Align::Right},
                   {"tolerance", Align::Right}});
  for (const auto& [key, count] : counts) {
    table.add_row({key.first, key.second, std::to_string(count.fine),
                   std::to_string(count.refused), std::to_string(count.unchecked),
                   error_text(count.error), error_text(count.tolerance)});
  }
  std::string text = table.text();
  if (verification.tuning.is_stopped) text += "stopped early: not all was checked\n";
  for (const std::string& note : verification.tuning.notes) text += wrapped("note: " + note);
  const std::string refused = refused_text(verification.candidates);
  return text + (refused.empty() ? "" : "\n" + refused);
}

Json verification_json(const std::string& model, const ModelVerification& verification) {
  Json json = {{"model", model},
               {"is_stopped", verification.tuning.is_stopped},
               {"notes", verification.tuning.notes},
               {"candidates", Json::array()}};
  for (const CandidateDescription& candidate : verification.candidates) {
    json["candidates"].push_back(to_json(candidate));
  }
  return json;
}

}  // namespace

CommandResult verify_model(const ModelArguments& arguments, bool is_json) {
  const ModelRequest request(arguments, MissingInputs::AreRandom);
  const LoadedModel loaded = request.load(Clock::now(), /*keeps_all_values=*/false);
  const ModelVerification verification = request.verify(loaded);
  const bool has_failed =
      std::any_of(verification.candidates.begin(), verification.candidates.end(),
                  [](const auto& each) { return each.verdict == Verdict::Refused; });
  return {has_failed ? kAnswerIsNo : kFine,
          is_json ? json_text(verification_json(arguments.model, verification))
                  : verification_text(verification)};
}

}  // namespace tessera::cli
