#include "base/module_folder.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

const std::filesystem::path kProgram = std::filesystem::canonical("/proc/self/exe");

TEST(ModuleFolder, IsThatOfTheProgram) { EXPECT_EQ(module_folder(), kProgram.parent_path()); }

TEST(ModuleFolder, HasProgramsBesideThisOne) {
  EXPECT_EQ(find_program(kProgram.filename()), kProgram);
}

TEST(ModuleFolder, DoesNotSearchElsewhere) {
  EXPECT_EQ(find_program("sh"), "");
  EXPECT_EQ(find_program("tessera-nothing"), "");
}

}  // namespace
}  // namespace tessera
