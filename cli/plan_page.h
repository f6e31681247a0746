// A plan as a page for a browser: one file that loads nothing else.
#pragma once

#include <string>

#include "cli/explain_report.h"

namespace tessera::cli {

// HTML: the steps as a graph and as a table, their times as a bar, and their candidates. What it
// shows is explain_json() of all steps; plan_page.html is the page around that.
std::string plan_page(const ExplainReport& report);

// plan_page.html, with a mark where the JSON goes. Made by the build.
extern const char* const kPlanPage;

}  // namespace tessera::cli
