// Measures the errors of all candidates of the plug-ins of this build, on every op whose results
// are rounded, against the bounds that ops state. Prints a line of JSON for each case and backend:
//   build/release/bin/measure_accuracy --lengths 1021,65536,1048576
// docs/accuracy.md is made from these lines by bench/accuracy.py. The exit code is 1 if an error
// exceeds its bound.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "accuracy_cases.h"
#include "backend/candidates.h"
#include "backend/catalog/catalog.h"
#include "backend/device_memory/hosted_kernel.h"
#include "backend/graph_view.h"
#include "backend/host.h"
#include "backend/layouts.h"
#include "backend/plugin.h"
#include "base/threads/denormals.h"
#include "export/onnx/export.h"
#include "ops/registry.h"
#include "tessera/error.h"
#include "verify/check_candidate.h"
#include "verify/random_tensor.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;
using verification::ExpectedValues;
using verification::OpCase;
using verification::ValueRange;

constexpr int kThreads = 2;
// Linked in; the last one of the catalog.
constexpr const char* kReference = "reference";

struct Arguments {
  std::vector<std::string> backends;
  std::vector<int64_t> lengths = {1021, 65536};
  std::string only;    // only cases whose text begins with this
  std::string folder;  // the folder to which cases are written for other runtimes; "": none
  bool prints_bounds = false;
  bool prints_all = false;  // every candidate
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

Arguments read_arguments(int count, char** given) {
  Arguments arguments;
  for (int index = 1; index < count; ++index) {
    const std::string name = given[index];
    const auto value = [&] { return std::string(index + 1 < count ? given[++index] : ""); };
    if (name == "--backends") arguments.backends = split(value());
    if (name == "--only") arguments.only = value();
    if (name == "--folder") arguments.folder = value();
    if (name == "--bounds") arguments.prints_bounds = true;
    if (name == "--all") arguments.prints_all = true;
    if (name == "--lengths") {
      arguments.lengths.clear();
      for (const std::string& length : split(value()))
        arguments.lengths.push_back(std::stoll(length));
    }
  }
  return arguments;
}

std::string file_of(const std::string& backend) {
  return std::string(TESSERA_PLUGIN_FOLDER) + "/backend_" + backend + ".so";
}

std::vector<std::string> built_backends() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TESSERA_PLUGIN_FOLDER)) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() == ".so" && stem.starts_with("backend_")) {
      names.push_back(stem.substr(8));
    }
  }
  std::ranges::sort(names);
  names.emplace_back(kReference);
  return names;
}

// One set of inputs of a case.
struct Variant {
  std::string range;
  OpCase op_case;
  ExpectedValues expected;
};

std::vector<Variant> variants_of(const OpCase& op_case, const ops::Registry& registry,
                                 ThreadPool& pool) {
  std::vector<Variant> variants;
  const auto add = [&](const std::string& range, OpCase made) {
    try {
      ExpectedValues expected = verification::expected_values(made, registry, pool);
      variants.push_back({range, std::move(made), std::move(expected)});
    } catch (const Error&) {
      return;  // the reference does not accept such inputs
    }
  };
  add("plain", op_case);
  for (const auto& [range, name] :
       {std::pair(ValueRange::Tails, "tails"), std::pair(ValueRange::LargeMean, "large mean")}) {
    OpCase made = op_case;
    bool is_other = false;
    for (size_t index = 0; index < made.inputs.size(); ++index) {
      Tensor changed = verification::in_range(op_case.inputs[index], range, index + 1);
      if (changed.is_empty()) continue;
      made.inputs[index] = std::move(changed);
      is_other = true;
    }
    if (is_other) add(name, std::move(made));
  }
  return variants;
}

// NumPy's format, version 1.0, for the types of the cases.
void write_npy(const std::filesystem::path& file, const Tensor& tensor) {
  const bool is_floating = tessera::is_floating(tensor.type());
  const std::string kind = tensor.type() == DataType::Bool ? "|b" : is_floating ? "<f" : "<i";
  std::string header = "{'descr': '" + kind + std::to_string(element_bytes(tensor.type())) +
                       "', 'fortran_order': False, 'shape': (";
  for (const int64_t dim : tensor.dims()) header += std::to_string(dim) + ", ";
  header += "), }";
  // The header ends at a multiple of 64.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::ofstream stream(file, std::ios::binary);
  stream << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size() % 256)
         << static_cast<char>(header.size() / 256) << header;
  stream.write(static_cast<const char*>(tensor.data()), tensor.bytes());
}

// A case for other runtimes: the model, its inputs, and the limits of its first output.
void write_case(const std::filesystem::path& folder, const Variant& variant,
                const ops::Registry& registry, const Json& about) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "model.onnx", std::ios::binary)
      << export_onnx(variant.op_case.graph, registry);
  for (size_t index = 0; index < variant.op_case.inputs.size(); ++index) {
    write_npy(folder / ("input" + std::to_string(index) + ".npy"), variant.op_case.inputs[index]);
  }
  const auto output = static_cast<size_t>(variant.op_case.graph.outputs[0].index);
  const verification::ErrorLimits& limits = variant.expected.limits[output];
  write_npy(folder / "exact.npy", limits.exact);
  if (!limits.spread.is_empty()) write_npy(folder / "spread.npy", limits.spread);
  std::ofstream(folder / "case.json") << about.dump();
}

class Measurement {
 public:
  explicit Measurement(const Arguments& arguments) : arguments_(arguments) {
    for (const std::string& backend : arguments.backends) plugins_.push_back(opened(backend));
    // The plug-ins whose layouts the others use.
    layout_plugins_ = plugins_;
    const bool has_onednn =
        std::ranges::find(arguments.backends, "onednn") != arguments.backends.end();
    if (!has_onednn && std::filesystem::exists(file_of("onednn"))) {
      layout_plugins_.push_back(Plugin::open(file_of("onednn"), std::make_shared<HostServices>()));
    }
    layouts_.emplace(layout_plugins_);
  }

  static std::shared_ptr<const Plugin> opened(const std::string& backend) {
    const auto services = std::make_shared<HostServices>();
    if (backend != kReference) return Plugin::open(file_of(backend), services);
    return Plugin::open_linked(catalog().back().open, backend, services);
  }

  bool run() {
    for (const int64_t length : arguments_.lengths) {
      for (const AccuracyCase& one : accuracy_cases(length)) {
        if (one.text.starts_with(arguments_.only)) measure(one, length);
      }
    }
    return is_fine_;
  }

 private:
  void measure(const AccuracyCase& one, int64_t length) {
    std::optional<OpCase> op_case;
    try {
      op_case = verification::read_op_case(one.text, registry_, 1);
    } catch (const Error&) {
      return;  // Not every op has every type.
    }
    const std::vector<Variant> variants = variants_of(*op_case, registry_, pool_);
    const tessera_graph view(op_case->graph, registry_);
    const Json about = {{"op", op_case->op}, {"case", one.text}, {"length", length}};
    for (const Variant& variant : variants) {
      if (variant.expected.limits.empty() || arguments_.folder.empty()) continue;
      Json full = about;
      full["range"] = variant.range;
      write_case(std::filesystem::path(arguments_.folder) / std::to_string(cases_++), variant,
                 registry_, full);
    }
    for (const std::shared_ptr<const Plugin>& plugin : plugins_) {
      const Offers offers = offers_of(view, plugin);
      for (const Variant& variant : variants) {
        Json line = about;
        line["range"] = variant.range;
        line["backend"] = plugin->name();
        measure(variant, offers, op_case->graph.nodes.size(), std::move(line));
      }
    }
  }

  Offers offers_of(const tessera_graph& view, const std::shared_ptr<const Plugin>& plugin) {
    Offers offers;
    pool_.execute([&] {
      offers = collect_offers(view, std::span(&plugin, 1), *layouts_, {.threads = kThreads});
    });
    return offers;
  }

  void measure(const Variant& variant, const Offers& offers, size_t nodes, Json line) {
    if (variant.expected.limits.empty()) return;
    int count = 0;
    double worst = 0;
    std::string worst_algorithm;
    std::string failure;
    for (const Candidate& candidate : offers.candidates) {
      if (candidate.nodes.size() != nodes || !candidate.has_kernel()) continue;
      verification::Report report;
      const verification::NumberCheck numbers =
          verification::check_candidate({.expected = variant.expected,
                                         .layouts = *layouts_,
                                         .candidate = hosted(candidate, *layouts_),
                                         .pool = pool_,
                                         .location = candidate.algorithm},
                                        report);
      ++count;
      const double share =
          numbers.tolerance > 0 ? numbers.error / numbers.tolerance : (numbers.error > 0 ? 1e9 : 0);
      if (share > worst || count == 1) worst_algorithm = candidate.algorithm;
      worst = std::max(worst, share);
      if (!report.failures().empty() && failure.empty()) {
        failure = candidate.algorithm + ": " + report.failures()[0].check + ": " +
                  report.failures()[0].message;
      }
      if (arguments_.prints_all) {
        Json each = line;
        each["algorithm"] = candidate.algorithm;
        each["share"] = share;
        std::cout << each.dump() << "\n";
      }
    }
    if (count == 0) return;
    line["candidates"] = count;
    line["worst"] = worst_algorithm;
    line["share"] = worst;
    if (!failure.empty()) line["failure"] = failure;
    is_fine_ = is_fine_ && failure.empty();
    std::cout << line.dump() << '\n' << std::flush;
  }

  const Arguments& arguments_;
  const ops::Registry registry_ = ops::make_registry();
  ScopedDenormals rule_{Denormals::Flush};  // of a bind without a setting for them
  ThreadPool pool_{kThreads, Denormals::Flush};
  std::vector<std::shared_ptr<const Plugin>> plugins_;
  std::vector<std::shared_ptr<const Plugin>> layout_plugins_;
  std::optional<LayoutTable> layouts_;
  bool is_fine_ = true;
  int cases_ = 0;
};

void print_bounds() {
  const ops::Registry registry = ops::make_registry();
  for (const ops::Op* op : registry.all()) {
    if (!op->error_bound || op->kernel == nullptr) continue;
    const ops::ErrorBound& bound = *op->error_bound;
    const Json line = {{"op", op->name},         {"ulps", bound.ulps}, {"terms", bound.terms},
                       {"inputs", bound.inputs}, {"logs", bound.logs}, {"absolute", bound.absolute},
                       {"source", bound.source}};
    std::cout << line.dump() << "\n";
  }
}

int main(int count, char** given) {
  Arguments arguments = read_arguments(count, given);
  if (arguments.prints_bounds) {
    print_bounds();
    return 0;
  }
  if (arguments.backends.empty()) arguments.backends = built_backends();
  return Measurement(arguments).run() ? 0 : 1;
}

}  // namespace
}  // namespace tessera

int main(int count, char** given) {
  try {
    return tessera::main(count, given);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
