#include "cli/inputs/memory_instance.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <unordered_map>

#include "tessera/error.h"

namespace tessera::cli {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::array<std::string_view, 4> kTitles = {"id", "lower", "upper", "size"};
constexpr int64_t kMaxFileBytes = int64_t{64} << 20U;
// Even the quick planning algorithms take time quadratic in the number of buffers.
constexpr size_t kMaxBuffers = 100'000;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const size_t comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

class InstanceReader {
 public:
  InstanceReader(std::string_view text, const std::string& file) : rest_(text), file_(file) {
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  }

  MemoryInstance read() {
    while (next_line()) {
      const std::vector<std::string_view> cells = cells_of(line_);
      if (columns_.empty()) {
        read_titles(cells);
      } else {
        read_buffer(cells);
      }
    }
    if (columns_.empty())
      fail("expected a line of titles, such as id,lower,upper,size; found none");
    if (instance_.names.empty()) fail("expected a line for each buffer, found none");
    return std::move(instance_);
  }

 private:
  // Returns false at the end of the file.
  bool next_line() {
    do {
      if (rest_.empty()) return false;
      ++number_;
      const size_t end = rest_.find('\n');
      line_ = trimmed(rest_.substr(0, end));
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    } while (line_.empty());
    return true;
  }

  [[noreturn]] void fail(const std::string& message, std::string_view buffer = {}) const {
    std::string location = file_;
    if (number_ > 0) location += ", line " + std::to_string(number_);
    if (!buffer.empty()) location += ", buffer " + quoted(buffer);
    throw Error(ErrorKind::InvalidArgument, location, message);
  }

  void read_titles(const std::vector<std::string_view>& cells) {
    for (const std::string_view title : kTitles) {
      const auto found = std::find(cells.begin(), cells.end(), title);
      if (found == cells.end()) {
        fail("expected the columns id, lower, upper and size, found none called " + quoted(title));
      }
      if (std::find(found + 1, cells.end(), title) != cells.end()) {
        fail("expected one column called " + quoted(title) + ", found two");
      }
      columns_.push_back(static_cast<size_t>(found - cells.begin()));
    }
    title_count_ = cells.size();
  }

  int64_t number_of(std::string_view title, std::string_view cell, std::string_view buffer,
                    int64_t least) const {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
    const std::string expected = "expected " + std::string(title) + " to be a whole number ";
    if (error == std::errc::result_out_of_range) {
      fail(expected + "of at most 64 bits, found " + quoted(cell), buffer);
    }
    if (error != std::errc() || end != cell.data() + cell.size() || number < least) {
      fail(expected + "from " + std::to_string(least) + " on, found " + quoted(cell), buffer);
    }
    return number;
  }

  void read_buffer(const std::vector<std::string_view>& cells) {
    if (cells.size() != title_count_) {
      fail("expected " + std::to_string(title_count_) + " values as the titles have, found " +
           std::to_string(cells.size()));
    }
    const std::string_view name = cells[columns_[0]];
    if (name.empty()) fail("expected an id, found none");
    const auto [first, is_new] = lines_.emplace(name, number_);
    if (!is_new) {
      fail("expected a unique id, found the id of line " + std::to_string(first->second), name);
    }
    BufferRequest request;
    request.lower = number_of(kTitles[1], cells[columns_[1]], name, 0);
    request.upper = number_of(kTitles[2], cells[columns_[2]], name, 0);
    request.bytes = number_of(kTitles[3], cells[columns_[3]], name, 1);
    if (request.upper <= request.lower) {
      fail("expected upper to be above lower, " + std::to_string(request.lower) + ", found " +
               std::to_string(request.upper),
           name);
    }
    // The planner adds its alignment of 1 byte to each size.
    if (request.bytes >= room_) {
      fail("expected sizes of at most 64 bits together, found " + std::to_string(request.bytes) +
               " where there is room for " + std::to_string(room_ - 1),
           name);
    }
    room_ -= request.bytes + 1;
    if (instance_.names.size() == kMaxBuffers) {
      fail("expected at most " + std::to_string(kMaxBuffers) + " buffers, found more", name);
    }
    instance_.names.emplace_back(name);
    instance_.requests.push_back(request);
  }

  std::string_view rest_;
  const std::string& file_;
  std::string_view line_;
  int64_t number_ = 0;
  std::vector<size_t> columns_;  // the column of each title in kTitles
  size_t title_count_ = 0;
  std::unordered_map<std::string_view, int64_t> lines_;  // line numbers by buffer name
  int64_t room_ = std::numeric_limits<int64_t>::max();
  MemoryInstance instance_;
};

}  // namespace

MemoryInstance parse_memory_instance(std::string_view text, const std::string& file) {
  return InstanceReader(text, file).read();
}

MemoryInstance read_memory_instance(const std::filesystem::path& file) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(file, problem)) {
    throw Error(
        ErrorKind::InvalidArgument, file.string(),
        "expected a file, found " +
            std::string(std::filesystem::exists(file, problem) ? "something else" : "none"));
  }
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(file, problem));
  if (!problem && bytes > kMaxFileBytes) {
    throw Error(ErrorKind::InvalidArgument, file.string(),
                "expected at most " + std::to_string(kMaxFileBytes) + " bytes, found " +
                    std::to_string(bytes));
  }
  std::ifstream stream(file, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)),
                         std::istreambuf_iterator<char>());
  if (!stream) {
    throw Error(ErrorKind::InvalidArgument, file.string(),
                "expected a file, found one that cannot be read");
  }
  return parse_memory_instance(text, file.string());
}

}  // namespace tessera::cli
