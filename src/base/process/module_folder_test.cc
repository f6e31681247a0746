#include "base/process/module_folder.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

const std::filesystem::path kProgram = std::filesystem::canonical("/proc/self/exe");

TEST(ModuleFolder, IsThatOfTheProgram) { EXPECT_EQ(module_folder(), kProgram.parent_path()); }

TEST(ModuleFolder, HasProgramsBesideThisOne) {
  EXPECT_EQ(find_program(kProgram.filename()).path, kProgram);
  EXPECT_EQ(find_program(kProgram.filename()).refusal, "");
}

TEST(ModuleFolder, DoesNotSearchElsewhere) {
  EXPECT_NE(find_program("sh").refusal.find("found none"), std::string::npos);
  EXPECT_EQ(find_program("tessera-nothing").path, "");
}

}  // namespace
}  // namespace tessera
