#include "cli/plans/explain_report.h"

#include <numeric>
#include <string_view>

#include "base/errors/check.h"
#include "cli/plans/costs_report.h"
#include "cli/plans/plan_summary.h"

namespace tessera::cli {
namespace {

constexpr std::string_view kMark = "/*PLAN*/";

// explain_json() of all steps, without the parts of candidates that the page does not show: large
// models have tens of thousands of candidates.
Json page_json(const ExplainReport& report) {
  std::vector<size_t> steps(report.plan.steps.size());
  std::iota(steps.begin(), steps.end(), size_t{0});
  Json json = explain_json(report, steps);
  const std::vector<CandidateDescription> candidates =
      candidates_of(report.plan.candidates, nodes_of(report.plan, steps));
  for (size_t index = 0; index < candidates.size(); ++index) {
    Json& shown = json["candidates"][index];
    shown["layouts"] = layouts_text(candidates[index].inputs, candidates[index].outputs);
    for (const char* key : {"inputs", "outputs", "op", "tolerance", "build_us", "workspace_bytes",
                            "round_count", "has_cold_weights"}) {
      shown.erase(key);
    }
  }
  return json;
}

}  // namespace

std::string plan_page(const ExplainReport& report) {
  std::string page = kPlanPage;
  const size_t mark = page.find(kMark);
  TESSERA_CHECK(mark != std::string::npos, "the page has a mark for its data");
  // Names in models may contain any bytes; "</script" inside a script would end it.
  std::string data;
  const Json json = page_json(report);
  for (const char each : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (each == '<') {
      data += "\\u003c";
    } else {
      data += each;
    }
  }
  return page.replace(mark, kMark.size(), data);
}

}  // namespace tessera::cli
