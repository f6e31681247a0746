#include "code_image.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <random>

#include "compile.h"
#include "group_runner.h"

namespace tessera::jit {
namespace {

// The object of a small kernel.
class CodeImages : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    missing_ = kLlvm->explain_missing();
    if (!missing_.empty()) return;
    GroupBuilder builder({10});
    const int32_t x = builder.operand(TESSERA_FLOAT32);
    const int32_t number = builder.number(TESSERA_FLOAT32, 3);
    builder.result(builder.append(TESSERA_EXPRESSION_MULTIPLY, TESSERA_FLOAT32, {x, number}));
    object_ =
        compile(kLlvm->get(), kernel_parts(builder.group, "", kTarget).at(0).print(), kTarget);
  }
  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << missing_;
  }

  // Whether the image of `object` can be made; anything but a Failure is a mistake.
  static bool is_accepted(const std::string& object) {
    try {
      image_of_object(object);
      return true;
    } catch (const plugin::Failure& failure) {
      EXPECT_NE(failure.kind(), TESSERA_INTERNAL);
      return false;
    }
  }

  static inline const Target kTarget = target_of_level("x86-64-v2");
  static inline const std::unique_ptr<LlvmLibrary> kLlvm = std::make_unique<LlvmLibrary>();
  static inline std::string missing_;
  static inline std::string object_;
};

TEST_F(CodeImages, AreTheCodeAndTheConstantsOfAnObject) {
  const CodeImage image = image_of_object(object_);
  EXPECT_GE(image.kernel, 0);
  EXPECT_EQ(image.stream, -1);
  const LoadedCode code(image);
  EXPECT_NE(code.kernel(), nullptr);
  EXPECT_EQ(code.stream(), nullptr);
}

TEST_F(CodeImages, ThatAreCutAnywhereAreRefused) {
  for (size_t size = 0; size < object_.size(); ++size) {
    ASSERT_FALSE(is_accepted(object_.substr(0, size))) << "cut to " << size << " bytes";
  }
}

// Flips every bit of the header, and random bits of all bytes. Accepted code is not run.
TEST_F(CodeImages, ThatAreDamagedAreReadInsideTheirBytes) {
  for (size_t bit = 0; bit < 8 * sizeof(Elf64_Ehdr); ++bit) {
    std::string damaged = object_;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    is_accepted(damaged);
  }
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = object_;
    for (uint32_t flips = 1 + random() % 4; flips > 0; --flips) {
      const size_t at = random() % damaged.size();
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << random() % 8);
    }
    is_accepted(damaged);
  }
}

struct BadText {
  const char* text;
  const char* message;  // part of the failure's text
};

TEST_F(CodeImages, AreNotMadeOfTextThatCannotBeCompiled) {
  const BadText cases[] = {
      {"define void @kernel(", "cannot parse a kernel"},
      {"define void @kernel() {\n  %x = add i32 %y, 1\n  ret void\n}\n", "cannot parse a kernel"},
      {"declare void @far()\ndefine void @kernel() {\n  call void @far()\n  ret void\n}\n",
       "'far'"},
      {"define void @other() {\n  ret void\n}\n", "it has no entry"},
      {"@x = global i32 1\ndefine i32 @kernel() {\n  %y = load i32, ptr @x\n  ret i32 %y\n}\n", ""},
  };
  for (const BadText& given : cases) {
    SCOPED_TRACE(given.text);
    try {
      image_of_object(compile(kLlvm->get(), given.text, kTarget));
      ADD_FAILURE() << "was accepted";
    } catch (const plugin::Failure& failure) {
      EXPECT_NE(std::string(failure.what()).find(given.message), std::string::npos)
          << failure.what();
    }
  }
}

TEST(LoadedCode, NeedsEntriesInsideTheCode) {
  const CodeImage cases[] = {{"", -1, -1},   {"", 0, -1},  {"xx", 2, -1},
                             {"xx", -1, -1}, {"xx", 0, 2}, {"xx", 0, -2}};
  for (const CodeImage& image : cases) EXPECT_THROW(LoadedCode{image}, plugin::Failure);
}

}  // namespace
}  // namespace tessera::jit
