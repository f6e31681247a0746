// Forges caches as a third party could who knows the format: their content is valid, but they are
// not signed with the user's key.
//
//   forge_cache replace IN OUT OLD NEW   OUT is IN with OLD replaced by NEW in its plan sections
//   forge_cache ingredient IN OUT NAME TEXT   OUT is IN for another machine or model
//   forge_cache part IN OUT KIND FILE    OUT is the bundle IN with FILE as its part KIND
//   forge_cache random IN FOLDER N SEED  N caches, 0.cache and so on: IN with changed prices and
//                                        plans
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "cache/bundle_file.h"
#include "cache/cache_file.h"
#include "price/cost_sections.h"
#include "price/cost_table.h"
#include "tessera/error.h"

namespace tessera {
namespace {

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

cache::CacheFile read(const std::filesystem::path& path) {
  return cache::decode(read_bytes(path), /*key=*/nullptr, path.string());
}

void replace_part(const std::filesystem::path& in, const std::filesystem::path& out,
                  const std::string& kind, const std::filesystem::path& file) {
  const std::string bundle = read_bytes(in);
  const std::string replacement = read_bytes(file);
  const cache::BundleTable table = cache::read_bundle_table(bundle, in.string());
  std::vector<cache::NewPart> parts;
  for (const cache::BundlePart& part : table.parts) {
    const bool is_it = cache::name(part.kind) == kind;
    parts.push_back({.kind = part.kind,
                     .name = part.name,
                     .pieces = {is_it ? std::string_view(replacement)
                                      : cache::part_bytes(bundle, part, in.string())}});
  }
  const std::string reason = cache::write_bundle(out, table.version, parts, [] {}).refusal;
  if (!reason.empty()) throw Error(ErrorKind::DeviceFailed, out.string(), reason);
}

void write(const std::filesystem::path& path, const cache::CacheFile& file) {
  std::ofstream(path, std::ios::binary) << cache::encode(file, /*key=*/nullptr);
}

void replace_all(std::string& text, const std::string& old, const std::string& wanted) {
  size_t at = 0;
  while ((at = text.find(old, at)) != std::string::npos) {
    text.replace(at, old.size(), wanted);
    at += wanted.size();
  }
}

class Forger {
 public:
  Forger(cache::CacheFile file, uint32_t seed) : file_(std::move(file)), random_(seed) {
    for (const cache::Section& section : file_.sections) {
      if (section.content != tuning::kCostsContent) continue;
      const tuning::CostTable table = tuning::read_cost_table(section.bytes, "it");
      for (const auto& [key, cost] : table.kernels) {
        names_.push_back(key.candidate);
      }
      for (const auto& [key, plan] : table.plans) {
        names_.insert(names_.end(), plan.steps.begin(), plan.steps.end());
      }
    }
  }

  cache::CacheFile forge() {
    cache::CacheFile file = file_;
    for (cache::Section& section : file.sections) {
      if (chance(3)) section.mac = {};
      if (chance(3)) section.mac[draw(section.mac.size())] ^= 1;
      section.made_ns += static_cast<int64_t>(draw(1000));
      if (section.content != tuning::kCostsContent) continue;
      tuning::CostTable table = tuning::read_cost_table(section.bytes, "it");
      for (auto& [key, cost] : table.kernels) forge(cost);
      for (auto& [key, plan] : table.plans) forge(plan);
      section.bytes = tuning::write_cost_table(table);
    }
    return file;
  }

 private:
  size_t draw(size_t count) { return random_() % count; }
  bool chance(size_t of) { return draw(of) == 0; }

  // Turns every refused candidate into a correct one that takes no time.
  void forge(tuning::Cost& cost) {
    cost.is_verified_here = true;
    cost.refusal.clear();
    cost.error = 0;
    cost.warm = cost.cold = tuning::Timing{1e-9, 1e-9, 1e-9, 1000};
  }

  void forge(tuning::KnownPlan& plan) {
    for (CandidateId& step : plan.steps) {
      if (names_.empty() || chance(2)) continue;
      const CandidateId& other = names_[draw(names_.size())];
      if (chance(2)) step.backend = other.backend;
      step.algorithm = other.algorithm;
      if (chance(4)) step.ports = other.ports;
    }
    if (plan.steps.size() > 1 && chance(8)) plan.steps.pop_back();
    if (chance(8)) plan.conversions.clear();
  }

  cache::CacheFile file_;
  std::mt19937 random_;
  std::vector<CandidateId> names_;
};

int forge(const std::vector<std::string>& arguments) {
  if (arguments.size() != 5) return 2;
  if (arguments[0] == "part") {
    replace_part(arguments[1], arguments[2], arguments[3], arguments[4]);
    return 0;
  }
  cache::CacheFile file = read(arguments[1]);
  if (arguments[0] == "ingredient") {
    for (cache::Ingredient& ingredient : file.ingredients) {
      if (ingredient.name == arguments[3]) ingredient.value = arguments[4];
    }
    write(arguments[2], file);
    return 0;
  }
  if (arguments[0] == "random") {
    Forger forger(file, static_cast<uint32_t>(std::stoul(arguments[4])));
    for (size_t index = 0; index < std::stoul(arguments[3]); ++index) {
      write(std::filesystem::path(arguments[2]) / (std::to_string(index) + ".cache"),
            forger.forge());
    }
    return 0;
  }
  for (cache::Section& section : file.sections) {
    if (section.type == tuning::kPlanSection) {
      replace_all(section.bytes, arguments[3], arguments[4]);
    }
  }
  write(arguments[2], file);
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int count, char** arguments) {
  try {
    return tessera::forge({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
