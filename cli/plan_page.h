// Renders a plan as a web page: one HTML file that loads no other file.
#pragma once

#include <string>

#include "cli/explain_report.h"

namespace tessera::cli {

// Returns HTML: measured and predicted times, the comparison of whole plans, the steps as a bar, a
// graph and a table, and their candidates. The data is explain_json() of all steps. The page itself
// is made of plan_page.html, plan_page.css, plan_page.js and plan_graph.js.
std::string plan_page(const ExplainReport& report);

// plan_page.html with styles and scripts, and a marker for the JSON. The build generates it.
extern const char* const kPlanPage;

}  // namespace tessera::cli
