// A plan as a page for a browser: one file that loads nothing else.
#pragma once

#include <string>

#include "cli/explain_report.h"

namespace tessera::cli {

// HTML: what was measured and predicted, the race of whole plans, the steps as a bar, a graph and a
// table, and their candidates. What it shows is from explain_json() of all steps; around that are
// plan_page.html, plan_page.css, plan_page.js and plan_graph.js.
std::string plan_page(const ExplainReport& report);

// plan_page.html with style and scripts, and a mark where the JSON goes. Made by the build.
extern const char* const kPlanPage;

}  // namespace tessera::cli
