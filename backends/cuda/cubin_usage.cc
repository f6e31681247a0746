#include "cubin_usage.h"

#include <charconv>
#include <optional>

namespace tessera::cuda {

namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// The number that stands before `text` in the line.
std::optional<int64_t> number_before(std::string_view line, std::string_view text) {
  const size_t end = line.find(text);
  if (end == std::string_view::npos) return std::nullopt;
  size_t begin = end;
  while (begin > 0 && is_digit(line[begin - 1])) --begin;
  int64_t number = 0;
  const auto read = std::from_chars(line.data() + begin, line.data() + end, number);
  if (read.ec != std::errc() || begin == end) return std::nullopt;
  return number;
}

// The text in quotation marks behind `text`.
std::optional<std::string> name_after(std::string_view line, std::string_view text) {
  const size_t found = line.find(text);
  if (found == std::string_view::npos) return std::nullopt;
  const size_t begin = found + text.size();
  const size_t end = line.find('\'', begin);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(line.substr(begin, end - begin));
}

}  // namespace

std::map<std::string, KernelUsage> usage_from_log(std::string_view log) {
  std::map<std::string, KernelUsage> usages;
  KernelUsage* usage = nullptr;
  while (!log.empty()) {
    const size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    if (const auto name = name_after(line, "Compiling entry function '")) usage = &usages[*name];
    if (usage == nullptr) continue;
    const auto read = [&](const char* text, int64_t& number) {
      number = number_before(line, text).value_or(number);
    };
    read(" bytes stack frame", usage->stack_bytes);
    read(" bytes spill stores", usage->spill_store_bytes);
    read(" bytes spill loads", usage->spill_load_bytes);
    read(" registers", usage->registers);
    read(" bytes smem", usage->shared_bytes);
  }
  return usages;
}

}  // namespace tessera::cuda
