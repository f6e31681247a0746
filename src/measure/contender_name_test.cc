#include "measure/contender_name.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

struct Case {
  ContenderKind kind;
  const char* backend;
  int round;
  const char* name;
};

const Case kCases[] = {
    {ContenderKind::Chosen, "", 1, "chosen"},
    {ContenderKind::Known, "", 1, "known"},
    {ContenderKind::Solved, "", 1, "solved"},
    {ContenderKind::Solved, "", 2, "solved, round 2"},
    {ContenderKind::Greedy, "", 1, "greedy"},
    {ContenderKind::InOrder, "", 1, "in order"},
    {ContenderKind::Alone, "mylib", 1, "mylib alone"},
    {ContenderKind::Alone, "mylib", 12, "mylib alone, round 12"},
    {ContenderKind::Unsplit, "mylib", 1, "mylib unsplit"},
    {ContenderKind::Unsplit, "mylib", 3, "mylib unsplit, round 3"},
};

TEST(ContenderName, SaysKindBackendAndRound) {
  for (const Case& one : kCases) {
    const ContenderDescription contender{
        .kind = one.kind, .backend = one.backend, .round = one.round};
    EXPECT_EQ(contender_name(contender), one.name);
  }
}

}  // namespace
}  // namespace tessera
