// CostTable as JSON; docs/formats/costs.md documents the format.
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "price/cost_table.h"
#include "tessera/error.h"

namespace tessera::tuning {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "tessera costs";
constexpr int kVersion = 6;
// A deeper nested text is not a table, and could exhaust the stack of its reader.
constexpr int kMaxDepth = 8;
constexpr double kMaxSeconds = 1e9;
constexpr int64_t kMaxThreads = 1'000'000;
constexpr uint64_t kMaxNodes = 1'000'000'000;

Json timing_json(const Timing& timing) {
  return {{"seconds", timing.seconds},
          {"low", timing.low},
          {"high", timing.high},
          {"rounds", timing.rounds}};
}

Json kernel_json(const CostKey& key, const Cost& cost) {
  Json json = {{"work", key.work},
               {"backend", key.candidate.backend},
               {"ingredients", key.ingredients},
               {"algorithm", key.candidate.algorithm},
               {"layouts", key.candidate.ports},
               {"threads", key.candidate.threads},
               {"precision", key.precision},
               {"nan", key.nan},
               {"accuracy", key.accuracy},
               {"density", key.density}};
  if (cost.cold) json["cold"] = timing_json(*cost.cold);
  if (cost.warm) json["warm"] = timing_json(*cost.warm);
  if (cost.in_context) json["in_context"] = timing_json(*cost.in_context);
  json["build_seconds"] = cost.build_seconds;
  // JSON has no infinity and no NaN; the refusal has the text of the number.
  json["error"] = std::isfinite(cost.error) ? cost.error : std::numeric_limits<double>::max();
  json["tolerance"] = cost.tolerance;
  json["refusal"] = cost.refusal;
  json["judged_here"] = cost.is_verified_here;
  return json;
}

Json conversion_json(const ConversionCostKey& key, const ConversionCost& cost) {
  return {{"backend", key.backend},
          {"ingredients", key.ingredients},
          {"from", key.from},
          {"to", key.to},
          {"element", std::string(name(key.element))},
          {"size_class", key.size_class},
          {"threads", key.threads},
          {"bytes", cost.bytes},
          {"timing", timing_json(cost.timing)},
          {"refusal", cost.refusal}};
}

Json plan_json(const PlanKey& key, const KnownPlan& plan) {
  Json steps = Json::array();
  for (const CandidateId& step : plan.steps) {
    steps.push_back({{"nodes", step.nodes},
                     {"backend", step.backend},
                     {"algorithm", step.algorithm},
                     {"layouts", step.ports},
                     {"threads", step.threads}});
  }
  Json conversions = Json::array();
  for (const PlannedConversion& step : plan.conversions) {
    conversions.push_back({{"value", step.value}, {"from", step.from}, {"to", step.to}});
  }
  return {{"graph", key.graph},
          {"backends", key.backends},
          {"threads", key.threads},
          {"precision", key.precision},
          {"nan", key.nan},
          {"accuracy", key.accuracy},
          {"steps", std::move(steps)},
          {"timing", timing_json(plan.timing)},
          {"conversions", std::move(conversions)},
          {"layout_backends", plan.layout_backends}};
}

// A position in the document; errors name it.
class JsonLocation {
 public:
  JsonLocation(std::string file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  JsonLocation operator/(const std::string& part) const { return {file_, path_ + "/" + part}; }
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorKind::Corrupt, file_ + (path_.empty() ? "" : ", " + path_), message);
  }

 private:
  std::string file_;
  std::string path_;
};

// The fields of an object. Each must be read once, and none may remain.
class Fields {
 public:
  Fields(const Json& json, JsonLocation location) : json_(json), location_(std::move(location)) {
    if (!json.is_object()) location_.fail("expected an object, found " + kind(json));
  }

  bool has(const std::string& field) const { return json_.contains(field); }

  const Json& get(const std::string& field) {
    const auto found = json_.find(field);
    if (found == json_.end()) location_.fail("expected a field '" + field + "', found none");
    ++read_;
    return *found;
  }

  std::string text(const std::string& field) {
    const Json& json = get(field);
    if (!json.is_string()) (location_ / field).fail("expected a text, found " + kind(json));
    return json.get<std::string>();
  }

  double number(const std::string& field, double min_value, double max_value) {
    const Json& json = get(field);
    if (!json.is_number()) (location_ / field).fail("expected a number, found " + kind(json));
    const auto number = json.get<double>();
    // Written so that NaN fails too.
    if (!(number >= min_value && number <= max_value)) {
      (location_ / field)
          .fail("expected a number from " + Json(min_value).dump() + " to " +
                Json(max_value).dump() + ", found " + json.dump());
    }
    return number;
  }

  int64_t whole(const std::string& field, int64_t min_value, int64_t max_value) {
    const Json& json = get(field);
    const bool is_signed = json.is_number_integer() && !json.is_number_unsigned();
    const bool fits =
        (is_signed && json.get<int64_t>() >= min_value && json.get<int64_t>() <= max_value) ||
        (json.is_number_unsigned() && min_value <= max_value &&
         json.get<uint64_t>() <= static_cast<uint64_t>(max_value) &&
         static_cast<int64_t>(json.get<uint64_t>()) >= min_value);
    if (!fits) {
      (location_ / field)
          .fail("expected a whole number from " + std::to_string(min_value) + " to " +
                std::to_string(max_value) + ", found " + json.dump());
    }
    return is_signed ? json.get<int64_t>() : static_cast<int64_t>(json.get<uint64_t>());
  }

  bool truth(const std::string& field) {
    const Json& json = get(field);
    if (!json.is_boolean()) (location_ / field).fail("expected a truth value, found " + kind(json));
    return json.get<bool>();
  }

  JsonLocation location(const std::string& field) const { return location_ / field; }

  void expect_no_more() const {
    if (read_ != json_.size()) {
      location_.fail("expected " + std::to_string(read_) + " fields, found " +
                     std::to_string(json_.size()));
    }
  }

  static std::string kind(const Json& json) { return json.type_name(); }

 private:
  const Json& json_;
  JsonLocation location_;
  size_t read_ = 0;
};

Timing read_timing(const Json& json, const JsonLocation& location) {
  Fields fields(json, location);
  Timing timing;
  timing.seconds = fields.number("seconds", 0, kMaxSeconds);
  timing.low = fields.number("low", 0, timing.seconds);
  timing.high = fields.number("high", timing.seconds, 2 * kMaxSeconds);
  timing.rounds = static_cast<int>(fields.whole("rounds", 0, 1'000'000'000));
  fields.expect_no_more();
  return timing;
}

std::optional<Timing> read_optional_timing(Fields& fields, const std::string& field) {
  if (!fields.has(field)) return std::nullopt;
  return read_timing(fields.get(field), fields.location(field));
}

// The fields of a candidate that costs and plans have in common. g++ 12 frees the members of an
// aggregate inside another one twice if an initialiser throws, so this is no initialiser list.
CandidateId read_candidate(Fields& fields) {
  CandidateId id;
  id.backend = fields.text("backend");
  id.algorithm = fields.text("algorithm");
  id.ports = fields.text("layouts");
  id.threads = static_cast<int>(fields.whole("threads", 1, kMaxThreads));
  return id;
}

void read_kernel(const Json& json, const JsonLocation& location, CostTable& table) {
  Fields fields(json, location);
  CandidateId candidate = read_candidate(fields);
  CostKey key{.work = fields.text("work"),
              .candidate = std::move(candidate),
              .ingredients = fields.text("ingredients"),
              .precision = static_cast<int>(fields.whole("precision", 0, 1)),
              .nan = static_cast<int>(fields.whole("nan", 0, 1)),
              .accuracy = static_cast<int>(fields.whole("accuracy", 0, 1)),
              .density = fields.text("density")};
  Cost cost{.cold = read_optional_timing(fields, "cold"),
            .warm = read_optional_timing(fields, "warm"),
            .in_context = read_optional_timing(fields, "in_context"),
            .build_seconds = fields.number("build_seconds", 0, kMaxSeconds),
            .error = fields.number("error", 0, std::numeric_limits<double>::max()),
            .tolerance = fields.number("tolerance", 0, 1),
            .refusal = fields.text("refusal"),
            .is_verified_here = fields.truth("judged_here")};
  fields.expect_no_more();
  if (cost.refusal.empty() && !cost.cold && !cost.warm) {
    location.fail("expected a time, cold or warm, or a refusal; found neither");
  }
  if (!table.kernels.emplace(std::move(key), std::move(cost)).second) {
    location.fail("expected each kernel once, found one that stands above already");
  }
}

void read_conversion(const Json& json, const JsonLocation& location, CostTable& table) {
  Fields fields(json, location);
  ConversionCostKey key{.backend = fields.text("backend"),
                        .ingredients = fields.text("ingredients"),
                        .from = fields.text("from"),
                        .to = fields.text("to")};
  const std::string element = fields.text("element");
  const std::optional<DataType> type = data_type_from_name(element);
  if (!type) (location / "element").fail("expected an element type, found '" + element + "'");
  key.element = *type;
  key.size_class = static_cast<int>(fields.whole("size_class", 0, 62));
  key.threads = static_cast<int>(fields.whole("threads", 1, kMaxThreads));
  ConversionCost cost;
  cost.bytes = fields.whole("bytes", 0, int64_t{1} << 62);
  cost.timing = read_timing(fields.get("timing"), fields.location("timing"));
  cost.refusal = fields.text("refusal");
  fields.expect_no_more();
  if (size_class_of(cost.bytes) != key.size_class) {
    location.fail("expected bytes of size class " + std::to_string(key.size_class) + ", found " +
                  std::to_string(cost.bytes));
  }
  if (!table.conversions.emplace(std::move(key), std::move(cost)).second) {
    location.fail("expected each conversion once, found one that stands above already");
  }
}

CandidateId read_step(const Json& json, const JsonLocation& location) {
  Fields fields(json, location);
  CandidateId step = read_candidate(fields);
  const Json& nodes = fields.get("nodes");
  if (!nodes.is_array()) {
    (location / "nodes").fail("expected a list, found " + Fields::kind(nodes));
  }
  for (const Json& node : nodes) {
    if (!node.is_number_unsigned() || node.get<uint64_t>() > kMaxNodes) {
      (location / "nodes").fail("expected places of nodes in the graph, found " + node.dump());
    }
    step.nodes.push_back(node.get<int>());
  }
  fields.expect_no_more();
  return step;
}

PlannedConversion read_planned_conversion(const Json& json, const JsonLocation& location) {
  Fields fields(json, location);
  PlannedConversion step{.value = static_cast<int>(fields.whole("value", 0, kMaxNodes)),
                         .from = fields.text("from"),
                         .to = fields.text("to")};
  fields.expect_no_more();
  return step;
}

void read_plan_layout(Fields& fields, KnownPlan& plan) {
  const Json& conversions = fields.get("conversions");
  JsonLocation location = fields.location("conversions");
  if (!conversions.is_array()) location.fail("expected a list, found " + Fields::kind(conversions));
  for (size_t index = 0; index < conversions.size(); ++index) {
    plan.conversions.push_back(
        read_planned_conversion(conversions[index], location / std::to_string(index)));
  }
  const Json& backends = fields.get("layout_backends");
  location = fields.location("layout_backends");
  if (!backends.is_array()) location.fail("expected a list, found " + Fields::kind(backends));
  for (const Json& backend : backends) {
    if (!backend.is_string()) location.fail("expected texts, found " + Fields::kind(backend));
    plan.layout_backends.push_back(backend.get<std::string>());
  }
}

void read_plan(const Json& json, const JsonLocation& location, CostTable& table) {
  Fields fields(json, location);
  PlanKey key{.graph = fields.text("graph"),
              .backends = fields.text("backends"),
              .threads = static_cast<int>(fields.whole("threads", 1, kMaxThreads)),
              .precision = static_cast<int>(fields.whole("precision", 0, 1)),
              .nan = static_cast<int>(fields.whole("nan", 0, 1)),
              .accuracy = static_cast<int>(fields.whole("accuracy", 0, 1))};
  KnownPlan plan;
  const Json& steps = fields.get("steps");
  const JsonLocation steps_location = fields.location("steps");
  if (!steps.is_array()) steps_location.fail("expected a list, found " + Fields::kind(steps));
  for (size_t index = 0; index < steps.size(); ++index) {
    plan.steps.push_back(read_step(steps[index], steps_location / std::to_string(index)));
  }
  plan.timing = read_timing(fields.get("timing"), fields.location("timing"));
  read_plan_layout(fields, plan);
  fields.expect_no_more();
  if (!table.plans.emplace(std::move(key), std::move(plan)).second) {
    location.fail("expected each plan once, found one that stands above already");
  }
}

void read_list(Fields& fields, const std::string& field, CostTable& table,
               void (*read)(const Json&, const JsonLocation&, CostTable&)) {
  const Json& list = fields.get(field);
  const JsonLocation location = fields.location(field);
  if (!list.is_array()) location.fail("expected a list, found " + Fields::kind(list));
  for (size_t index = 0; index < list.size(); ++index) {
    read(list[index], location / std::to_string(index), table);
  }
}

Json parse(const std::string& text, const JsonLocation& location) {
  try {
    // Limits the depth while parsing: deeper objects and arrays are not built.
    bool is_too_deep = false;
    Json json = Json::parse(text, [&](int depth, Json::parse_event_t, Json&) {
      is_too_deep = is_too_deep || depth > kMaxDepth;
      return !is_too_deep;
    });
    if (is_too_deep) location.fail("expected a table, found something that nests deeper");
    return json;
  } catch (const Json::parse_error& error) {
    location.fail("expected JSON, found a syntax error at byte " + std::to_string(error.byte) +
                  "; write the table anew with `tessera tune`");
  } catch (const Json::exception&) {
    // The number exceeds the range of double.
    location.fail("expected JSON with numbers of seconds, found one that is too large");
  }
}

}  // namespace

std::string write_cost_table(const CostTable& table) {
  Json kernels = Json::array();
  for (const auto& [key, cost] : table.kernels) kernels.push_back(kernel_json(key, cost));
  Json conversions = Json::array();
  for (const auto& [key, cost] : table.conversions) {
    conversions.push_back(conversion_json(key, cost));
  }
  Json plans = Json::array();
  for (const auto& [key, plan] : table.plans) plans.push_back(plan_json(key, plan));
  const Json json = {{"format", kFormat},
                     {"version", kVersion},
                     {"machine", table.machine},
                     {"kernels", std::move(kernels)},
                     {"conversions", std::move(conversions)},
                     {"plans", std::move(plans)}};
  // Names may contain arbitrary bytes.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

CostTable read_cost_table(const std::string& text, const std::string& file) {
  const JsonLocation location(file, "");
  const Json json = parse(text, location);
  Fields fields(json, location);
  const std::string format = fields.text("format");
  if (format != kFormat) {
    (location / "format").fail("expected '" + std::string(kFormat) + "', found '" + format + "'");
  }
  const int64_t version = fields.whole("version", 0, 1'000'000);
  if (version != kVersion) {
    throw Error(ErrorKind::Unsupported, file,
                "expected version " + std::to_string(kVersion) + " of a table of costs, found " +
                    std::to_string(version) + "; write it anew with `tessera tune`");
  }
  CostTable table;
  table.machine = fields.text("machine");
  read_list(fields, "kernels", table, read_kernel);
  read_list(fields, "conversions", table, read_conversion);
  read_list(fields, "plans", table, read_plan);
  fields.expect_no_more();
  return table;
}

}  // namespace tessera::tuning
