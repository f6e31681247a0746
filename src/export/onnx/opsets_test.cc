#include "export/onnx/opsets.h"

#include <utility>

#include "base/error_test.h"

namespace tessera::onnx_export {
namespace {

Node node(const std::string& op, int version, const std::string& domain = "") {
  Node made;
  made.name = op;
  made.op = op;
  made.version = version;
  made.domain = domain;
  return made;
}

class ChooseOpsets : public testing::Test {
 protected:
  ChooseOpsets() {
    registry_.add({.name = "Old", .versions = {1, 6}});
    registry_.add({.name = "Young", .versions = {16, 21}});
    registry_.add({.name = "Steady", .versions = {1}});
    registry_.add({.name = "Retired", .versions = {7, 9}, .last_version = 9});
  }

  int chosen(std::vector<Node> nodes) const {
    Graph graph;
    graph.nodes = std::move(nodes);
    return choose_opsets(graph, registry_).at("");
  }

  ops::Registry registry_;
};

TEST_F(ChooseOpsets, TakesTheOneNearestToTheUsualOne) {
  EXPECT_EQ(chosen({}), 13);
  EXPECT_EQ(chosen({node("Steady", 1), node("Old", 6)}), 13);
  EXPECT_EQ(chosen({node("Young", 16)}), 16);
  EXPECT_EQ(chosen({node("Young", 21), node("Steady", 1)}), 21);
  EXPECT_EQ(chosen({node("Retired", 9)}), 9);
  EXPECT_EQ(chosen({node("Retired", 7)}), 8);
}

TEST_F(ChooseOpsets, EveryDomainHasItsOwn) {
  Graph graph;
  graph.nodes = {node("Steady", 1), node("Mine", 3, "org.example")};
  const std::map<std::string, int> expected = {{"", 13}, {"org.example", 3}};
  EXPECT_EQ(choose_opsets(graph, registry_), expected);
}

TEST_F(ChooseOpsets, NestedGraphsCount) {
  Graph graph;
  graph.nodes = {node("Steady", 1)};
  graph.nodes[0].bodies.emplace_back().graph.nodes = {node("Young", 21)};
  EXPECT_EQ(choose_opsets(graph, registry_).at(""), 21);
}

TEST_F(ChooseOpsets, NamesTwoThatCannotStandTogether) {
  EXPECT_EQ(error_of([&] { chosen({node("Steady", 1), node("Young", 16), node("Retired", 9)}); }),
            "Unsupported: node 'Young' (Young): an ONNX file has one operator set for each domain, "
            "but none of 'ai.onnx' contains both node 'Young' (Young) of version 16 (in sets from "
            "16 on) and node 'Retired' (Retired) of version 9 (in sets up to 9)");
  Graph graph;
  graph.nodes = {node("Mine", 3, "org.example"), node("Other", 2, "org.example")};
  EXPECT_EQ(choose_opsets(graph, registry_).at("org.example"), 3) << "nothing is known of them";
}

}  // namespace
}  // namespace tessera::onnx_export
