#include "code_image.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

namespace tessera::jit {

using plugin::Failure;

namespace {

[[noreturn]] void fail_corrupt(const std::string& what) {
  throw Failure(TESSERA_CORRUPT, "the object of a compiled kernel is damaged: " + what);
}

constexpr uint64_t kMaxAlignment = 4096;
constexpr size_t kMaxCodeBytes = size_t{1} << 30;
constexpr int64_t kNotLaidOut = -1;

// Reads an ELF object; every offset is checked before it is used.
class ObjectReader {
 public:
  explicit ObjectReader(std::string_view object) : object_(object) {
    const auto header = read<Elf64_Ehdr>(0);
    const bool is_elf = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                        header.e_ident[EI_CLASS] == ELFCLASS64 &&
                        header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_type == ET_REL &&
                        header.e_machine == EM_X86_64 && header.e_shentsize == sizeof(Elf64_Shdr);
    if (!is_elf) fail_corrupt("expected an ELF object for x86-64");
    for (size_t index = 0; index < header.e_shnum; ++index) {
      sections_.push_back(read<Elf64_Shdr>(at(header.e_shoff, index, sizeof(Elf64_Shdr))));
    }
    if (header.e_shstrndx >= sections_.size()) fail_corrupt("it has no names of sections");
    names_ = header.e_shstrndx;
    positions_.assign(sections_.size(), kNotLaidOut);
  }

  CodeImage image() {
    for (size_t index = 0; index < sections_.size(); ++index) lay_out(index);
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_RELA) relocate(section);
    }
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type == SHT_SYMTAB) find_entries(section);
    }
    if (image_.kernel < 0) fail_corrupt("it has no entry");
    return std::move(image_);
  }

 private:
  static uint64_t at(uint64_t begin, uint64_t index, uint64_t bytes) {
    constexpr uint64_t kLimit = uint64_t{1} << 32;
    if (begin > kLimit || index > kLimit) fail_corrupt("an offset is outside of it");
    return begin + index * bytes;
  }

  template <class T>
  T read(uint64_t offset) const {
    T value;
    if (offset > object_.size() || object_.size() - offset < sizeof(T)) {
      fail_corrupt("it is too short");
    }
    std::memcpy(&value, object_.data() + offset, sizeof(T));
    return value;
  }

  std::string_view content(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) fail_corrupt("a section has no bytes");
    if (section.sh_offset > object_.size() ||
        section.sh_size > object_.size() - section.sh_offset) {
      fail_corrupt("a section is outside of it");
    }
    return object_.substr(section.sh_offset, section.sh_size);
  }

  std::string_view text_at(size_t table, uint64_t offset) const {
    if (table >= sections_.size()) fail_corrupt("a table of names is missing");
    const std::string_view names = content(sections_[table]);
    if (offset >= names.size()) fail_corrupt("a name is outside of its table");
    const std::string_view rest = names.substr(offset);
    const size_t end = rest.find('\0');
    if (end == std::string_view::npos) fail_corrupt("a name has no end");
    return rest.substr(0, end);
  }

  void lay_out(size_t index) {
    const Elf64_Shdr& section = sections_[index];
    if ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_type != SHT_PROGBITS) return;
    const std::string_view name = text_at(names_, section.sh_name);
    if (!name.starts_with(".text") && !name.starts_with(".rodata")) return;
    const uint64_t alignment = std::max<uint64_t>(section.sh_addralign, 1);
    if (alignment > kMaxAlignment || (alignment & (alignment - 1)) != 0) {
      fail_corrupt("a section has a wrong alignment");
    }
    const std::string_view bytes = content(section);
    std::string& code = image_.code;
    code.resize((code.size() + alignment - 1) / alignment * alignment, '\0');
    positions_[index] = static_cast<int64_t>(code.size());
    code += bytes;
    if (code.size() > kMaxCodeBytes) fail_corrupt("it is too large");
  }

  Elf64_Sym symbol(const Elf64_Shdr& table, uint64_t index) const {
    const std::string_view bytes = content(table);
    if (table.sh_entsize != sizeof(Elf64_Sym) || index >= bytes.size() / sizeof(Elf64_Sym)) {
      fail_corrupt("a symbol does not exist");
    }
    Elf64_Sym found;
    std::memcpy(&found, bytes.data() + index * sizeof(Elf64_Sym), sizeof(found));
    return found;
  }

  // The position of a symbol in the image.
  int64_t position_of(const Elf64_Shdr& table, const Elf64_Sym& symbol) const {
    if (symbol.st_shndx == SHN_UNDEF) {
      throw Failure(TESSERA_UNSUPPORTED, "compiled code calls '" +
                                             std::string(text_at(table.sh_link, symbol.st_name)) +
                                             "', which kernels do not have");
    }
    if (symbol.st_shndx >= sections_.size() || positions_[symbol.st_shndx] == kNotLaidOut ||
        symbol.st_value > sections_[symbol.st_shndx].sh_size) {
      fail_corrupt("a symbol is not in its code");
    }
    return positions_[symbol.st_shndx] + static_cast<int64_t>(symbol.st_value);
  }

  void relocate(const Elf64_Shdr& section) {
    if (section.sh_info >= sections_.size() || section.sh_link >= sections_.size()) {
      fail_corrupt("relocations are of no section");
    }
    const int64_t base = positions_[section.sh_info];
    if (base == kNotLaidOut) return;
    const std::string_view bytes = content(section);
    if (section.sh_entsize != sizeof(Elf64_Rela) || bytes.size() % sizeof(Elf64_Rela) != 0) {
      fail_corrupt("relocations have a wrong size");
    }
    for (size_t at_byte = 0; at_byte < bytes.size(); at_byte += sizeof(Elf64_Rela)) {
      Elf64_Rela relocation;
      std::memcpy(&relocation, bytes.data() + at_byte, sizeof(relocation));
      apply(relocation, base, sections_[section.sh_info].sh_size, sections_[section.sh_link]);
    }
  }

  void apply(const Elf64_Rela& relocation, int64_t base, uint64_t size, const Elf64_Shdr& table) {
    const uint64_t kind = ELF64_R_TYPE(relocation.r_info);
    if (kind != R_X86_64_PC32 && kind != R_X86_64_PLT32) {
      throw Failure(TESSERA_UNSUPPORTED,
                    "compiled code has a relocation of kind " + std::to_string(kind));
    }
    if (size < sizeof(int32_t) || relocation.r_offset > size - sizeof(int32_t)) {
      fail_corrupt("a relocation is outside of its section");
    }
    constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
    if (relocation.r_addend > kLimit || relocation.r_addend < -kLimit) {
      fail_corrupt("a relocation is too far");
    }
    const int64_t place = base + static_cast<int64_t>(relocation.r_offset);
    const int64_t target =
        position_of(table, symbol(table, ELF64_R_SYM(relocation.r_info))) + relocation.r_addend;
    const int64_t distance = target - place;
    // The addend counts from the end of the instruction, so targets may seem to lie before.
    if (target < -kLimit || distance > kLimit || distance < -kLimit) {
      fail_corrupt("a relocation is too far");
    }
    const auto narrow = static_cast<int32_t>(distance);
    std::memcpy(image_.code.data() + place, &narrow, sizeof(narrow));
  }

  void find_entries(const Elf64_Shdr& table) {
    const std::string_view bytes = content(table);
    for (uint64_t index = 0; index < bytes.size() / sizeof(Elf64_Sym); ++index) {
      const Elf64_Sym found = symbol(table, index);
      if (ELF64_ST_TYPE(found.st_info) != STT_FUNC) continue;
      const std::string_view name = text_at(table.sh_link, found.st_name);
      if (name == kKernelName) image_.kernel = position_of(table, found);
      if (name == kStreamName) image_.stream = position_of(table, found);
    }
  }

  std::string_view object_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<int64_t> positions_;  // of each section in the image
  size_t names_ = 0;
  CodeImage image_;
};

}  // namespace

CodeImage image_of_object(std::string_view object) { return ObjectReader(object).image(); }

// Sanitizers in callers read data in front of the first instruction of a function.
constexpr size_t kBytesBefore = 64;

LoadedCode::LoadedCode(const CodeImage& image) {
  const auto size = static_cast<int64_t>(image.code.size());
  const bool is_stream_inside = image.stream >= -1 && image.stream < size;
  if (image.kernel < 0 || image.kernel >= size || !is_stream_inside) {
    throw Failure(TESSERA_CORRUPT, "a compiled kernel has no entry");
  }
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes_ = (kBytesBefore + image.code.size() + page - 1) / page * page;
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw Failure(TESSERA_OUT_OF_MEMORY, "there is no memory for a compiled kernel");
  }
  auto* first = static_cast<std::byte*>(memory) + kBytesBefore;
  std::memcpy(first, image.code.data(), image.code.size());
  if (mprotect(memory, bytes_, PROT_READ | PROT_EXEC) != 0) {
    munmap(memory, bytes_);
    throw Failure(TESSERA_UNSUPPORTED,
                  "the system does not let a process execute what it compiles");
  }
  memory_ = memory;
  kernel_ = reinterpret_cast<KernelFunction*>(first + image.kernel);
  if (image.stream >= 0) stream_ = reinterpret_cast<KernelFunction*>(first + image.stream);
}

LoadedCode::~LoadedCode() { munmap(memory_, bytes_); }

}  // namespace tessera::jit
