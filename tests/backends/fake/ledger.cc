#include "shared_state.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

#include "tessera/backend.h"

namespace tessera::fake {
namespace {

// Further violations are only counted.
constexpr size_t kMaxTexts = 1000;

constexpr int64_t kUnlimited = INT64_MAX;

struct Setting {
  std::string_view name;
  int64_t fake_settings::* member;
  int64_t otherwise;  // the default
  int64_t min;
  int64_t max;
};

constexpr Setting kSettings[] = {
    {"devices", &fake_settings::devices, 1, 1, kMaxDevices},
    {"peer", &fake_settings::peer, FAKE_PEER_COPIES, 0, FAKE_REFUSES_PEER_COPIES},
    {"kernel_ns", &fake_settings::kernel_ns, 0, 0, kUnlimited},
    {"copy_ns", &fake_settings::copy_ns, 0, 0, kUnlimited},
    {"copy_bytes_per_us", &fake_settings::copy_bytes_per_us, 0, 0, kUnlimited},
    {"delay_us", &fake_settings::delay_us, 0, 0, kUnlimited / 1000},
    {"seed", &fake_settings::seed, 1, 0, kUnlimited},
    {"memory_bytes", &fake_settings::memory_bytes, 0, 0, kUnlimited},
    {"fail_at", &fake_settings::fail_at, 0, 0, kUnlimited},
    {"fail_mode", &fake_settings::fail_mode, FAKE_FAILS, 0, FAKE_IS_LOST},
    {"fail_later", &fake_settings::fail_later, 0, 0, 1},
    {"detects", &fake_settings::detects, 1, 0, 1},
    {"host_kernels", &fake_settings::host_kernels, 0, 0, 1},
    {"separate_threads", &fake_settings::separate_threads, 0, 0, 1},
    {"one_at_a_time", &fake_settings::one_at_a_time, 0, 0, 1},
    {"prints", &fake_settings::prints, 0, 0, 1},
    {"host_kernel_ns", &fake_settings::host_kernel_ns, 0, 0, kUnlimited},
    {"max_allocation_bytes", &fake_settings::max_allocation_bytes, 0, 0, kUnlimited},
};

[[noreturn]] void refuse(const std::string& reason) {
  throw plugin::Failure(TESSERA_INVALID_ARGUMENT, "settings of 'fake': " + reason);
}

void parse_setting(std::string_view item, fake_settings& settings) {
  const size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals);
  const auto* found = std::ranges::find(kSettings, name, &Setting::name);
  if (found == std::end(kSettings)) refuse("there is no '" + std::string(name) + "'");
  const std::string_view text =
      equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1);
  int64_t& number = settings.*(found->member);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    refuse("'" + std::string(item) + "' has no number");
  }
}

}  // namespace

fake_settings default_settings() {
  fake_settings settings = {};
  for (const Setting& setting : kSettings) settings.*(setting.member) = setting.otherwise;
  return settings;
}

std::string explain_illegal(const fake_settings& settings) {
  for (const Setting& setting : kSettings) {
    const int64_t number = settings.*(setting.member);
    if (number >= setting.min && number <= setting.max) continue;
    return "'" + std::string(setting.name) + "' is " + std::to_string(number) + ", expected " +
           std::to_string(setting.min) + " to " + std::to_string(setting.max);
  }
  return "";
}

fake_settings parse_settings(std::string_view text) {
  fake_settings settings = default_settings();
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    parse_setting(text.substr(0, comma), settings);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (const std::string wrong = explain_illegal(settings); !wrong.empty()) refuse(wrong);
  return settings;
}

void Ledger::configure(const fake_settings& settings) {
  settings_ = settings;
  calls_ = 0;
  for (std::atomic<bool>& is_lost : is_lost_) is_lost = false;
}

void Ledger::count(int32_t device, int64_t fake_counters::* counter, int64_t amount) {
  together_.*counter += amount;
  of_device_[static_cast<size_t>(device)].*counter += amount;
}

void Ledger::count_bytes(int32_t device, int64_t bytes) {
  count(device, &fake_counters::live_bytes, bytes);
  count(device, &fake_counters::live_allocations, bytes > 0 ? 1 : -1);
  for (fake_counters* counters : {&together_, &of_device_[static_cast<size_t>(device)]}) {
    counters->peak_bytes = std::max(counters->peak_bytes, counters->live_bytes);
  }
}

const fake_counters& Ledger::counters(int32_t device) const {
  return device < 0 ? together_ : of_device_[static_cast<size_t>(device)];
}

void Ledger::reset_counters() {
  const auto reset = [](fake_counters& counters) {
    fake_counters fresh = {};
    fresh.live_allocations = counters.live_allocations;
    fresh.live_queues = counters.live_queues;
    fresh.live_events = counters.live_events;
    fresh.live_bytes = counters.live_bytes;
    fresh.peak_bytes = counters.live_bytes;
    counters = fresh;
  };
  reset(together_);
  for (fake_counters& counters : of_device_) reset(counters);
  violations_.clear();
  calls_ = 0;
}

bool Ledger::is_failing_call(int32_t device) {
  count(device, &fake_counters::calls);
  if (++calls_ != settings_.fail_at) return false;
  count(device, &fake_counters::failures);
  return true;
}

void Ledger::report(int32_t device, const std::string& violation) {
  count(device, &fake_counters::violations);
  if (settings_.prints != 0) std::fprintf(stderr, "fake: %s\n", violation.c_str());
  if (violations_.size() < kMaxTexts) violations_.push_back(violation);
}

}  // namespace tessera::fake
