// Upper and lower case of text in UTF-8.
#pragma once

#include <locale.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tessera::ops {

// Maps letters one by one, by the rules of a language if this machine has them ("tr_TR"), else by
// Unicode's. Bytes that are not UTF-8 stay as they are. Thread-safe.
class LetterCase {
 public:
  explicit LetterCase(const std::string& locale_name);

  std::string upper(std::string_view text) const;
  std::string lower(std::string_view text) const;

 private:
  struct Free {
    void operator()(locale_t locale) const { freelocale(locale); }
  };
  uint32_t upper_of(uint32_t letter) const;
  uint32_t lower_of(uint32_t letter) const;

  std::unique_ptr<std::remove_pointer_t<locale_t>, Free> locale_;  // null: only ASCII is mapped
  // What the letters of ASCII become. The system is asked for others only.
  std::array<uint32_t, 128> upper_of_ascii_ = {};
  std::array<uint32_t, 128> lower_of_ascii_ = {};
};

}  // namespace tessera::ops
