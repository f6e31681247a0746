#include "cli/plan_page.h"

#include <numeric>
#include <string_view>

#include "base/check.h"

namespace tessera::cli {
namespace {

constexpr std::string_view kMark = "/*PLAN*/";

}  // namespace

std::string plan_page(const ExplainReport& report) {
  std::vector<size_t> steps(report.plan.steps.size());
  std::iota(steps.begin(), steps.end(), size_t{0});
  std::string page = kPlanPage;
  const size_t mark = page.find(kMark);
  TESSERA_CHECK(mark != std::string::npos, "the page has a mark for its data");
  // Names in models may hold any bytes; in a script "</script" would end it.
  std::string data;
  const Json json = explain_json(report, steps);
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
