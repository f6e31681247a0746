// Names and spellings of libraries, including those that this version does not include.
#include "backend/catalog/backend_set.h"

#include <array>
#include <string>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 2> kAliases = {"mlib", "my_library"};
constexpr std::array<CatalogEntry, 1> kKnown = {
    CatalogEntry{"mylib", kAliases, "backend_mylib.so", "install it", "it was left out",
                 CatalogEntry::kNotConfigured, nullptr},
};
constexpr std::array<std::string_view, 2> kOtherAliases = {"oth", "another"};
constexpr std::array<AbsentBackend, 2> kAbsent = {
    AbsentBackend{"other", kOtherAliases, "this version has no plug-in over it yet"},
    AbsentBackend{"third", {}, "nor over that"},
};

class BackendSetNames : public testing::Test {
 protected:
  // Kind and message of the error for choosing `name`.
  std::pair<ErrorKind, std::string> refusal_of(const std::string& name) {
    const auto error = thrown_by([&] { set_.choose({name}); });
    if (!error) return {ErrorKind::Internal, "it was chosen"};
    return {error->kind(), error->what()};
  }

  BackendSet set_{kKnown, kAbsent, "", std::make_shared<HostServices>()};
};

TEST_F(BackendSetNames, AreTakenHoweverTheyAreWritten) {
  for (const char* name : {"mylib", "MyLib", "my-lib", "My_Lib", "mlib", "MLIB", "my_library",
                           "My-Library", "mylibrary"}) {
    EXPECT_EQ(set_.resolve_alias(name), "mylib") << name;
    const auto [kind, text] = refusal_of(name);
    EXPECT_EQ(kind, ErrorKind::Unsupported);
    EXPECT_THAT(text, HasSubstr("it was left out")) << name;
  }
  for (const char* name : {"", "-", "mylibs", "my lib", "other"}) {
    EXPECT_EQ(set_.resolve_alias(name), name);
  }
}

TEST_F(BackendSetNames, OfWhatThisVersionDoesNotHaveSayWhatIsMissing) {
  for (const char* name : {"other", "Other", "oth", "another", "OTH"}) {
    const auto [kind, text] = refusal_of(name);
    EXPECT_EQ(kind, ErrorKind::Unsupported) << name;
    EXPECT_THAT(text, HasSubstr("backend '" + std::string(name) +
                                "': cannot be used: this version has no plug-in over it"));
  }
  EXPECT_THAT(refusal_of("third").second, HasSubstr("nor over that"));
}

TEST_F(BackendSetNames, ThatNobodyKnowsAreAnsweredWithTheLikelyOne) {
  const auto expect_likely = [&](const std::string& name, const std::string& likely) {
    const auto [kind, text] = refusal_of(name);
    EXPECT_EQ(kind, ErrorKind::InvalidArgument) << name;
    EXPECT_THAT(text, HasSubstr("found no backend of this name")) << name;
    EXPECT_THAT(text, testing::EndsWith(likely)) << name;
  };
  expect_likely("mylip", "; did you mean 'mylib'?");
  expect_likely("thrid", "; did you mean 'third'?");
  expect_likely("anothr", "; did you mean 'another'?");
  expect_likely("", "found no backend of this name");
}

}  // namespace
}  // namespace tessera
