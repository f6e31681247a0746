#include "api/bind/measuring_notice.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <system_error>
#include <utility>

#include "base/files/writable_path.h"
#include "cache/stored_file.h"
#include "measure/quote.h"

namespace tessera {
namespace {

// Measuring that takes less needs no notice.
constexpr double kMinSeconds = 1;

// One flag for the process, not for each set of backends: one notice is enough for a user who loads
// a hundred models.
std::atomic<bool> is_reported = false;

// The absolute path of the first folder that can be written to; "" if there is none.
std::string written_folder(const std::vector<std::filesystem::path>& folders) {
  const auto is_usable = [](const std::filesystem::path& folder) {
    if (!explain_unwritable_folder(folder).empty()) return false;
    std::error_code failure;
    const bool is_missing = !std::filesystem::exists(folder, failure);
    return is_missing || cache::explain_unsafe_folder(folder).empty();
  };
  const auto found = std::find_if(folders.begin(), folders.end(), is_usable);
  if (found == folders.end()) return "";
  std::error_code failure;
  // "folder/." and "folder/" both mean the folder.
  const std::filesystem::path whole = std::filesystem::absolute(*found / "", failure);
  return failure ? found->string() : whole.lexically_normal().parent_path().string();
}

}  // namespace

std::string measuring_notice(const TuningQuote& quote,
                             const std::vector<std::filesystem::path>& folders) {
  const std::string folder = written_folder(folders);
  return "the first bind of a model measures which kernels are the fastest: " + quote_text(quote) +
         "; " +
         (folder.empty()
              ? "the plan cannot be kept, as no folder for caches can be written to"
              : "the plan is kept in '" + folder + "', and later binds measure nothing") +
         "; optimize=False, --no-optimize or TESSERA_OPTIMIZE=0 switch it off";
}

ProgressCallback with_measuring_notice(ProgressCallback report,
                                       std::vector<std::filesystem::path> folders, const Log& log) {
  if (is_reported) return report;
  return [report = std::move(report), folders = std::move(folders),
          &log](const TuneProgress& progress) {
    const bool is_long = progress.quote && progress.quote->seconds >= kMinSeconds;
    if (is_long && !is_reported.exchange(true)) {
      log.warn(measuring_notice(*progress.quote, folders));
    }
    return !report || report(progress);
  };
}

}  // namespace tessera
