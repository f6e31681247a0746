#include "cli/inputs/memory_instance.h"

#include <random>

#include "base/errors/error_test.h"
#include "base/matchers_test.h"

namespace tessera::cli {
namespace {

constexpr const char* kSmall = "id,lower,upper,size\na,0,3,4\nb,3,9,8\n";

TEST(MemoryInstance, ReadsBuffers) {
  const MemoryInstance instance = parse_memory_instance(kSmall, "f");
  EXPECT_THAT(instance.names, ElementsAre("a", "b"));
  ASSERT_EQ(instance.requests.size(), 2);
  EXPECT_EQ(instance.requests[1].lower, 3);
  EXPECT_EQ(instance.requests[1].upper, 9);
  EXPECT_EQ(instance.requests[1].bytes, 8);
}

TEST(MemoryInstance, TakesWhatOtherProgramsWrite) {
  for (const char* text : {"\xef\xbb\xbfid,lower,upper,size\r\na,0,3,4\r\n\r\nb,3,9,8\r\n",
                           "size, offset ,upper,lower,id\n4,0,3,0,a\n8,0, 9 ,3,b",
                           "\nid,lower,upper,size\n\na,0,3,4\nb,3,9,8\n\n"}) {
    const MemoryInstance instance = parse_memory_instance(text, "f");
    EXPECT_THAT(instance.names, ElementsAre("a", "b"));
    EXPECT_EQ(instance.requests[1].lower, 3);
    EXPECT_EQ(instance.requests[0].bytes, 4);
  }
}

TEST(MemoryInstance, SaysWhatIsWrong) {
  const struct {
    const char* text;
    const char* where;
    const char* message;
  } cases[] = {
      {"", "f", "expected a line of titles"},
      {"\xef\xbb\xbf", "f", "expected a line of titles"},
      {"id,lower,upper,size\n", "f, line 1", "expected a line for each buffer"},
      {"id,lower,upper\na,0,1\n", "f, line 1", "found none called 'size'"},
      {"0,0,1,4\n1,0,1,4\n", "f, line 1", "found none called 'id'"},
      {"id,id,lower,upper,size\n", "f, line 1", "found two"},
      {"id,lower,upper,size\na,0,1\n", "f, line 2",
       "expected 4 values as the titles have, found 3"},
      {"id,lower,upper,size\n,0,1,4\n", "f, line 2", "expected an id"},
      {"id,lower,upper,size\na,0,1,x\n", "f, line 2, buffer 'a'", "expected size to be a whole"},
      {"id,lower,upper,size\na,0,1,4.5\n", "f, line 2, buffer 'a'", "found '4.5'"},
      {"id,lower,upper,size\na,0,1,\n", "f, line 2, buffer 'a'", "found ''"},
      {"id,lower,upper,size\na,0,1,0\n", "f, line 2, buffer 'a'", "from 1 on, found '0'"},
      {"id,lower,upper,size\na,-1,1,4\n", "f, line 2, buffer 'a'", "expected lower to be a whole"},
      {"id,lower,upper,size\na,1,1,4\n", "f, line 2, buffer 'a'", "expected upper to be above"},
      {"id,lower,upper,size\n\na,0,1,4\na,0,1,4\n", "f, line 4, buffer 'a'", "the id of line 3"},
      {"id,lower,upper,size\na,0,1,9223372036854775808\n", "f, line 2, buffer 'a'",
       "of at most 64 bits, found '9223372036854775808'"},
      {"id,lower,upper,size\na,0,1,4611686018427387904\nb,0,1,4611686018427387904\n",
       "f, line 3, buffer 'b'", "at most 64 bits together"},
  };
  for (const auto& [text, where, message] : cases) {
    const auto error = thrown_by([&, text = text] { parse_memory_instance(text, "f"); });
    ASSERT_TRUE(error) << text;
    EXPECT_EQ(error->kind(), ErrorKind::InvalidArgument);
    EXPECT_EQ(error->where(), where) << text;
    EXPECT_THAT(error->message(), HasSubstr(message)) << text;
  }
}

// A damaged file is either rejected, or parsed into buffers that can be planned.
TEST(MemoryInstance, DamagedFilesAreReadOrRefused) {
  std::mt19937 random(17);
  const std::string small = kSmall;
  const std::string signs = "0123456789,-.+\n\r\t \"x\xef\xff";
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = small;
    for (unsigned change = 1 + random() % 3; change > 0; --change) {
      const char sign = signs[random() % signs.size()];
      const size_t position = random() % (text.size() + 1);
      switch (random() % 3) {
        case 0:
          text.insert(position, 1, sign);
          break;
        case 1:
          text.erase(position, 1 + random() % 5);
          break;
        default:
          text.insert(position, text.substr(0, random() % 30));
      }
    }
    try {
      const MemoryInstance instance = parse_memory_instance(text, "f");
      const MemoryPlan plan = plan_memory(instance.requests, {.search_effort = 1000});
      EXPECT_EQ(explain_violation(instance.requests, plan), "") << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument) << text;
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 19'900);
}

}  // namespace
}  // namespace tessera::cli
