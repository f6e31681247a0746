#include "openvino.h"

#include <dlfcn.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "regions.h"
#include "supported_ops.h"

namespace tessera::openvino {

namespace {

// In a folder of its own beside this plug-in, so that it is not taken for another plug-in.
constexpr const char* kLibrary = "openvino/openvino_compiler.so";

std::filesystem::path own_folder() {
  Dl_info found = {};
  static const char kHere = 0;
  if (dladdr(&kHere, &found) == 0 || found.dli_fname == nullptr) {
    throw plugin::Failure(TESSERA_INTERNAL, "the plug-in does not find the file that it is in");
  }
  return std::filesystem::path(found.dli_fname).parent_path();
}

// The reason why no region is proposed for any graph; "" if regions are.
std::string explain_useless(const plugin::ProposeOptions& options) {
  if (options.is_training) return "its regions are for inference only";
  if (options.skips_measured_only) {
    return "its regions are used only if times are measured (optimize), or if nodes are pinned to "
           "it";
  }
  return "";
}

// Writing the model of a region takes long.
bool is_wanted(const Region& region, const plugin::ProposeOptions& options) {
  return !options.wanted || std::any_of(options.wanted->begin(), options.wanted->end(),
                                        [&](const auto& one) { return one.nodes == region; });
}

plugin::Candidate candidate_for(const plugin::Graph& graph, const Region& region,
                                const plugin::ProposeOptions& options,
                                std::shared_ptr<CompilerLoader> loader) {
  const RegionBoundary boundary = boundary_of(graph, region);
  const RegionWork work = work_of(graph, region, boundary);
  plugin::Candidate candidate;
  candidate.nodes = region;
  for (const int32_t value : boundary.inputs) candidate.inputs.push_back({.value = value});
  for (const int32_t value : boundary.outputs) candidate.outputs.push_back({.value = value});
  candidate.absorbed = boundary.weights;
  candidate.optimistic_seconds = optimistic_seconds(work, options.threads);
  candidate.build_seconds = build_seconds(work, region.size());
  // OpenVINO keeps weights in the formats of its kernels, and memory for values inside.
  candidate.library_bytes = work.weight_bytes + work.inner_bytes;
  candidate.flags = uint32_t{TESSERA_CANDIDATE_MEASURED_ONLY} | TESSERA_CANDIDATE_INFERENCE_ONLY |
                    TESSERA_CANDIDATE_STORES_CONSTANTS;
  RegionModel written = model_of(graph, region, boundary);
  written.keeps_nan = options.nan == TESSERA_NAN_EXACT;
  const auto model = std::make_shared<const RegionModel>(std::move(written));
  candidate.build = [model, loader](const plugin::BuildOptions& build) {
    return loader->get()->compile(*model, build);
  };
  candidate.load = [model, loader = std::move(loader),
                    threads = options.threads](std::string_view bytes) {
    return loader->get()->load(*model, threads, bytes);
  };
  return candidate;
}

}  // namespace

std::shared_ptr<Compiler> CompilerLoader::get() {
  const std::lock_guard lock(mutex_);
  if (compiler_ != nullptr) return compiler_;
  const std::filesystem::path file = own_folder() / kLibrary;
  // Never closed: the threads of OpenVINO live longer than any object that could close it.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw plugin::Failure(TESSERA_UNSUPPORTED,
                          std::string("OpenVINO " TESSERA_OPENVINO_VERSION " cannot be loaded: ") +
                              (reason ? reason : "?"));
  }
  const auto make = reinterpret_cast<MakeCompiler>(dlsym(library, TESSERA_OPENVINO_MAKE_COMPILER));
  if (make == nullptr) {
    throw plugin::Failure(TESSERA_INTERNAL, file.string() + " is not the library it should be");
  }
  compiler_.reset(make());
  return compiler_;
}

plugin::Description Openvino::describe() {
  // OpenVINO takes long to load, so it is loaded for the first region. If it is missing, that is
  // reported now.
  std::error_code ignored;
  const std::filesystem::path compiler = own_folder() / kLibrary;
  const std::filesystem::path found = TESSERA_OPENVINO_LIBRARY;
  // The folders in which the compiler's library searches for OpenVINO. The path is absolute, or
  // relative to that library.
  const bool is_there = std::filesystem::exists(compiler.parent_path() / found, ignored) ||
                        std::filesystem::exists(compiler.parent_path() / found.filename(), ignored);
  if (!is_there || !std::filesystem::exists(compiler, ignored)) loader_->get();
  plugin::Description description;
  description.name = "openvino";
  description.version = TESSERA_OPENVINO_VERSION;
  description.ingredients = {{"version", TESSERA_OPENVINO_VERSION},
                             {"revision", kernel_revision()}};
  return description;
}

void Openvino::propose(const plugin::Graph& graph, const plugin::ProposeOptions& options,
                       plugin::Proposals& proposals) {
  if (options.takes_sizes) return;
  const std::string useless = explain_useless(options);
  if (!useless.empty()) {
    for (int32_t node = 0; node < graph.node_count(); ++node) proposals.refuse(node, useless);
    return;
  }
  std::vector<bool> is_supported(static_cast<size_t>(graph.node_count()), true);
  std::vector<bool> is_taken(is_supported.size(), false);
  std::vector<std::string> reasons(is_supported.size());
  for (const plugin::Node& node : graph.nodes()) {
    const auto index = static_cast<size_t>(node.id());
    std::optional<std::string> reason = explain_unsupported(graph, node, options.nan);
    is_supported[index] = !reason;
    reasons[index] = reason ? *std::move(reason)
                            : "its neighbours are nodes that OpenVINO regions do not contain";
  }
  for (const Region& region : find_regions(graph, is_supported)) {
    if (!is_wanted(region, options)) continue;
    try {
      proposals.add(candidate_for(graph, region, options, loader_));
      for (const int32_t node : region) is_taken[static_cast<size_t>(node)] = true;
    } catch (const std::exception& exception) {
      for (const int32_t node : region) reasons[static_cast<size_t>(node)] = exception.what();
    }
  }
  if (options.wanted) return;
  for (size_t node = 0; node < is_taken.size(); ++node) {
    if (!is_taken[node]) proposals.refuse(static_cast<int32_t>(node), reasons[node]);
  }
}

}  // namespace tessera::openvino

TESSERA_PLUGIN(tessera::openvino::Openvino)
