// Rows of the lists in description_fields.h. A row has the names of a field in Python and in JSON,
// and the text that explains it.
//
// python/tessera/descriptions.py and the tables of docs/formats/json.md are printed from these rows
// (tests/cli/print_descriptions.cc). A text is a phrase in Markdown that is true in both: it calls
// fields by their names in Python, in backticks, which become keys in JSON, and it says "null",
// which becomes None in Python. An empty text is called "empty". A name or key that ends in its
// unit needs no unit in the text.
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera {

// Parts of a row that most rows do without.
struct RowExtras {
  const char* python_note = "";  // added to the help in Python: ", in seconds"
  const char* json_note = "";    // added to the help in JSON
  // All values of a text, as Python has them: "usable, not built". JSON has them in snake case.
  const char* choices = "";
  const char* kind = "";            // in JSON, if type and key do not say it
  const char* python_default = "";  // of the argument of Python's constructor: "None"
};

// A field of `Struct`: the name of Python's attribute, and the key in JSON if it is printed.
template <class Struct, class T, bool kPrinted>
struct DescribedField {
  using Type = T;
  static constexpr bool kIsPrinted = kPrinted;
  const char* name;
  T Struct::* member;
  const char* key;
  const char* help;
  RowExtras extras;
};

// A key in JSON whose value is no field: the code that prints the struct computes it.
struct ComputedKey {
  const char* key;
  const char* kind;  // "list of Input"
  const char* help;
};

template <class Struct, class T>
constexpr DescribedField<Struct, T, true> field(const char* name, const char* key,
                                                T Struct::* member, const char* help,
                                                const RowExtras& extras = {}) {
  return {name, member, key, help, extras};
}
template <class Struct, class T>
constexpr DescribedField<Struct, T, true> field(const char* name, T Struct::* member,
                                                const char* help, const RowExtras& extras = {}) {
  return {name, member, name, help, extras};
}
// A field that JSON does not contain, or only under a ComputedKey.
template <class Struct, class T>
constexpr DescribedField<Struct, T, false> hidden_field(const char* name, T Struct::* member,
                                                        const char* help,
                                                        const RowExtras& extras = {}) {
  return {name, member, nullptr, help, extras};
}

// The class of a list, in Python and in JSON.
struct DescribedClass {
  const char* name;  // of the class in Python
  // Titles of the tables of json.md that have the keys, separated by commas; the first is the kind
  // of a key that has such an object. "": no command prints the struct, and keys have no meaning.
  const char* json_titles = "";
  const char* help;  // Python's docstring
  // In Python, the class from which it inherits; python/tessera/description_texts.py has others.
  const char* python_base = "PlainData";
  bool is_nullable = false;  // in JSON all values but lists may be null
};

// A std::tuple would do, but compiles in seconds instead of milliseconds.
template <size_t kIndex, class Row>
struct ListedRow {
  Row row;
};

template <class Indices, class... Rows>
struct ListedRows;

template <size_t... kIndices, class... Rows>
struct ListedRows<std::index_sequence<kIndices...>, Rows...> : ListedRow<kIndices, Rows>... {
  constexpr explicit ListedRows(const Rows&... each) : ListedRow<kIndices, Rows>{each}... {}

  template <class Visitor>
  constexpr void for_each(Visitor& visit) const {
    (visit(ListedRow<kIndices, Rows>::row), ...);
  }
};

template <class... Rows>
struct FieldList : DescribedClass {
  constexpr explicit FieldList(const DescribedClass& described, const Rows&... each)
      : DescribedClass(described), rows(each...) {}

  ListedRows<std::index_sequence_for<Rows...>, Rows...> rows;
};

// The FieldList of a description, in the order of its JSON; null for other types.
template <class T>
inline constexpr auto kFields = nullptr;

template <class T>
inline constexpr bool kIsDescribed = !std::is_same_v<decltype(kFields<T>), const std::nullptr_t>;

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// Calls `visit` with each DescribedField and ComputedKey of `Struct`; description_fields_test.cc
// compares their number with that of the struct's fields.
template <class Struct, class Visitor>
constexpr void for_each_row(Visitor visit) {
  kFields<Struct>.rows.for_each(visit);
}

// Calls `visit` with each DescribedField of `Struct`.
template <class Struct, class Visitor>
constexpr void for_each_field(Visitor visit) {
  for_each_row<Struct>([&]<class Row>(const Row& row) {
    if constexpr (!std::is_same_v<Row, ComputedKey>) visit(row);
  });
}

}  // namespace tessera
