#include "capi/boundary.h"

namespace tessera::capi {
namespace {

// The numbers of the C interface are those of the enumerators, from 1 on.
int32_t code_of(ErrorKind kind) { return static_cast<int32_t>(kind) + 1; }

static_assert(static_cast<int>(ErrorKind::InvalidModel) + 1 == TESSERA_INVALID_MODEL);
static_assert(static_cast<int>(ErrorKind::InvalidArgument) + 1 == TESSERA_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorKind::Internal) + 1 == TESSERA_INTERNAL);
static_assert(static_cast<int>(ErrorKind::Cancelled) + 1 == TESSERA_CANCELLED);
static_assert(static_cast<int>(ErrorKind::CacheMiss) + 1 == TESSERA_CACHE_MISS);

// The longest beginning of `text` that fits and does not end within a character of UTF-8.
template <size_t kBytes>
void copy_text(char (&to)[kBytes], std::string_view text) {
  size_t length = std::min(text.size(), kBytes - 1);
  if (length < text.size()) {
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;
  }
  std::copy_n(text.begin(), length, to);
  to[length] = '\0';
}

std::string quoted_argument(std::string_view argument) {
  return "argument '" + std::string(argument) + "'";
}

}  // namespace

int32_t report(tessera_failure* failure, ErrorKind kind, std::string_view where,
               std::string_view message) noexcept {
  const int32_t code = code_of(kind);
  if (failure == nullptr || failure->struct_size < kFirstBytes<tessera_failure>) return code;
  failure->kind = code;
  copy_text(failure->where, where);
  copy_text(failure->message, message);
  return code;
}

void refuse_argument(std::string_view argument, const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, quoted_argument(argument), message);
}

void check_struct(const size_t* given, std::string_view argument, size_t first_bytes) {
  if (given == nullptr) refuse_argument(argument, "expected a struct, found NULL");
  if (*given >= first_bytes && *given <= kMaxStructBytes) return;
  refuse_argument(argument, "expected a struct_size of at least " + std::to_string(first_bytes) +
                                ", found " + std::to_string(*given) +
                                "; set it to sizeof of the struct");
}

void check_unknown_members(const void* bytes, size_t size, std::string_view argument) {
  const auto* const begin = static_cast<const unsigned char*>(bytes);
  if (std::all_of(begin, begin + size, [](unsigned char byte) { return byte == 0; })) return;
  refuse_argument(argument,
                  "expected zero in the members that this library, of version " +
                      std::to_string(TESSERA_C_VERSION) +
                      " of the C interface, does not know, found others; use a newer library");
}

}  // namespace tessera::capi
