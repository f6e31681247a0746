#include "backend/contract/pattern.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/error_test.h"
#include "base/tensor/tensors_test.h"
#include "graph/verify.h"
#include "tessera/float16.h"

namespace tessera {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  std::string part;
  while (std::getline(stream, part, separator)) {
    const size_t begin = part.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    parts.push_back(part.substr(begin, part.find_last_not_of(' ') + 1 - begin));
  }
  return parts;
}

// "s = Sigmoid(x); y = Mul(x, s); out y": a node has the name of its first output. A name that no
// node makes is an input, or a constant of 2 elements if it begins with 'w'; a number is a
// constant; "-" is an omitted input.
class TextGraph {
 public:
  explicit TextGraph(const std::string& text) {
    for (const std::string& statement : split(text, ';')) read(statement);
    EXPECT_EQ(explain_illegal(graph_), "");
  }
  Graph& graph() { return graph_; }

 private:
  void read(const std::string& statement) {
    if (statement.starts_with("out ")) return graph_.outputs.push_back(value(statement.substr(4)));
    if (statement.starts_with("keep ")) return graph_.kept.push_back(value(statement.substr(5)));
    const size_t equals = statement.find(" = ");
    const size_t open = statement.find('(');
    const std::vector<std::string> made = split(statement.substr(0, equals), ',');
    std::vector<ValueId> inputs;
    for (const std::string& each :
         split(statement.substr(open + 1, statement.find(')') - open - 1), ',')) {
      inputs.push_back(value(each));
    }
    Node node;
    node.name = made[0];
    node.op = statement.substr(equals + 3, open - equals - 3);
    if (const size_t colon = node.op.find(':'); colon != std::string::npos) {
      node.domain = node.op.substr(0, colon);
      node.op.erase(0, colon + 1);
    }
    node.version = 1;
    node.inputs = std::move(inputs);
    for (const std::string& each : made) node.outputs.push_back(add(each));
    graph_.nodes.push_back(std::move(node));
  }

  ValueId add(const std::string& name) {
    Value made;
    made.name = name;
    return add_value(graph_, std::move(made));
  }

  ValueId value(const std::string& name) {
    if (name == "-") return {};
    const ValueId found = find_value(graph_, name);
    if (!found.is_none()) return found;
    const ValueId id = add(name);
    const bool is_number = name.find_first_not_of("0123456789.-") == std::string::npos;
    std::vector<float> elements;
    if (is_number) elements = {std::stof(name)};
    if (name[0] == 'w') elements = {1, 2};
    if (elements.empty()) {
      graph_.inputs.push_back(id);
      return id;
    }
    std::vector<int64_t> dims;
    if (!is_number) dims = {2};
    graph_[id].constant = floats(dims, elements);
    graph_[id].type = Type::tensor(DataType::Float32, shape_from(dims));
    return id;
  }

  Graph graph_;
};

// "a b | c d": the nodes of each match.
std::string text_of(const Graph& graph, const std::vector<std::vector<NodeId>>& matches) {
  std::string text;
  for (const std::vector<NodeId>& match : matches) {
    if (!text.empty()) text += " |";
    for (const NodeId node : match) text += (text.empty() ? "" : " ") + graph[node].name;
  }
  return text;
}

std::string matches(const Graph& graph, const std::string& pattern) {
  return text_of(graph, find_matches(graph, PatternIndex(graph), parse_pattern(pattern)));
}

struct Case {
  const char* what;
  const char* graph;
  const char* pattern;
  const char* expected;
};

const Case kCases[] = {
    // Steps and ops.
    {"one node", "y = Relu(x); out y", "Relu(_)", "y"},
    {"nothing there", "y = Relu(x); out y", "Tanh(_)", ""},
    {"any inputs", "y = Concat(x, z, w); out y", "Concat", "y"},
    {"sorted by the node", "a = Relu(x); b = Tanh(a); c = Relu(b); out c", "Relu|Tanh",
     "a | b | c"},
    {"producers first", "a = Conv(x, w); b = Relu(a); out b", "c = Conv(_, #); r = Relu(c)", "a b"},
    {"alternatives in the middle", "a = Conv(x, w); b = Tanh(a); out b",
     "c = Gemm|Conv; Relu|Tanh(c)", "a b"},
    {"an op of another domain", "y = org.example:Relu(x); out y", "Relu(_)", ""},
    {"a domain", "y = org.example:Relu(x); z = Relu(y); out z", "org.example:Relu(_)", "y"},
    {"onnx's own domain by name", "y = Relu(x); out y", "ai.onnx:Relu(_)", "y"},
    {"space means nothing", "a = Conv(x, w); b = Relu(a); out b",
     " c=Conv ( _ , # )\n;\tr = Relu(c) ; ", "a b"},
    {"matches overlap", "a = Relu(x); b = Relu(a); c = Relu(b); out c", "a = Relu(_); Relu(a)",
     "a b | b c"},
    // Inputs.
    {"too many inputs", "y = Conv(x, w, w2); out y", "Conv(_, _)", ""},
    {"further inputs", "y = Conv(x, w, w2); out y", "Conv(_, _, ...)", "y"},
    {"further inputs may be none", "y = Conv(x, w); out y", "Conv(_, _, ...)", "y"},
    {"left out at the end", "y = Clip(x); out y", "Clip(_, _, _)", "y"},
    {"left out inside", "y = Clip(x, -, 6); out y", "Clip(_, _, 6)", "y"},
    {"a name wants a value", "y = Clip(x, -, 6); out y", "Clip(x, low, 6)", ""},
    {"left out may be unnamed", "y = Clip(x, 0, -); out y", "Clip(_, 0)", "y"},
    {"no inputs", "a = Relu(x); b = Noise(); out a; out b", "Noise()", "b"},
    {"no inputs refuses some", "a = Relu(x); out a", "Relu()", ""},
    {"a constant", "y = Conv(x, w); z = Conv(x, x2); out y; out z", "Conv(_, #)", "y"},
    {"a number", "y = Clip(x, 0, 6); z = Clip(x, 0, 1); out y; out z", "Clip(_, 0, 6)", "y"},
    {"a number within the tolerance", "y = Div(x, 1.4142135); out y", "Div(_, 1.41421356)", "y"},
    {"a number beyond the tolerance", "y = Div(x, 1.4142); out y", "Div(_, 1.41421356)", ""},
    {"a negative number", "y = Div(x, -2.5); out y", "Div(_, -2.5)", "y"},
    {"a number wants one element", "y = Div(x, w); out y", "Div(_, 1)", ""},
    {"order counts", "y = Sub(1, x); out y", "Sub(_, 1)", ""},
    // Captures.
    {"swish", "s = Sigmoid(x); y = Mul(x, s); out y", "s = Sigmoid(x); Mul(x, s)", "s y"},
    {"not swish", "s = Sigmoid(x); y = Mul(z, s); out y", "s = Sigmoid(x); Mul(x, s)", ""},
    {"the other order", "s = Sigmoid(x); y = Mul(s, x); out y", "s = Sigmoid(x); Mul(x, s)", "s y"},
    {"two names for one value", "y = Mul(x, x); out y", "Mul(a, b)", "y"},
    {"one name for two values", "y = Div(x, z); out y", "Div(a, a)", ""},
    {"an outside value is outside", "s = Sigmoid(x); y = Div(s, s); out y",
     "s! = Sigmoid(_); Div(s, x)", ""},
    {"so is an unnamed one", "s = Sigmoid(x); y = Div(s, s); out y", "s! = Sigmoid(_); Div(s, _)",
     ""},
    {"and a further one", "s = Sigmoid(x); y = Concat(s, s); out y", "s! = Sigmoid; Concat(s, ...)",
     ""},
    {"twice by name", "s = Sigmoid(x); y = Div(s, s); out y", "s = Sigmoid(_); Div(s, s)", "s y"},
    // Any order.
    {"a number on either side", "a = Add(1, x); b = Add(x, 1); out a; out b", "Add(_, 1)", "a | b"},
    {"a step on either side", "a = Conv(x, w); y = Add(r, a); out y", "c = Conv; Add(c, _)", "a y"},
    {"every step finds its input", "a = Relu(x); b = Tanh(x); y = Add(a, b); out y",
     "t = Tanh; r = Relu; Add(t, r)", "b a y"},
    {"one match for the same nodes", "a = Relu(x); b = Relu(z); y = Add(a, b); out y",
     "a = Relu; b = Relu; Add(a, b)", "a b y"},
    {"two ways to read a sum", "a = Conv(x, w); b = Conv(z, w); y = Add(a, b); out y",
     "c = Conv; Add(c, _)", "a y | b y"},
    {"constants are counted", "y = Sum(w, x, w); z = Sum(w, x, x); out y; out z", "Sum(#, _, #)",
     "y"},
    {"names are counted", "y = Max(w, 2); out y", "Max(#, x)", "y"},
    {"a sum with more", "a = Relu(x); y = Sum(z, w, a); out y", "r = Relu; Sum(r, #, ...)", "a y"},
    {"only onnx's own", "y = org.example:Add(1, x); out y", "org.example:Add(_, 1)", ""},
    // Values that must not be needed outside.
    {"read outside", "a = Conv(x, w); b = Relu(a); c = Tanh(a); out b; out c", "c = Conv; Relu(c)",
     ""},
    {"an output", "a = Conv(x, w); b = Relu(a); out a; out b", "c = Conv; Relu(c)", ""},
    {"kept", "a = Conv(x, w); b = Relu(a); keep a; out b", "c = Conv; Relu(c)", ""},
    {"marked", "a = Conv(x, w); b = Relu(a); keep a; out b", "c! = Conv; Relu(c)", "a b"},
    {"the last one may be needed", "a = Conv(x, w); b = Relu(a); keep b; out b",
     "c = Conv; Relu(c)", "a b"},
    {"a second output outside", "a, m = Dropout(x); b = Relu(a); c = Not(m); out b; out c",
     "d = Dropout; Relu(d)", ""},
    {"a second output unread", "a, m = Dropout(x); b = Relu(a); out b", "d = Dropout; Relu(d)",
     "a b"},
    {"by its second output", "a, m = Split(x); b = Relu(m); c = Tanh(a); out b; out c",
     "s! = Split; Relu(s.1)", "a b"},
    {"not by its first", "a, m = Split(x); b = Relu(a); out b", "s = Split; Relu(s.1)", ""},
    {"both outputs", "a, m = Split(x); b = Sub(a, m); out b", "s = Split; Sub(s.0, s.1)", "a b"},
    {"read twice inside", "a = Conv(x, w); s = Sigmoid(a); y = Mul(a, s); out y",
     "c = Conv; s = Sigmoid(c); Mul(c, s)", "a s y"},
    // Steps that no other step reads.
    {"siblings", "a = MatMul(x, w); b = MatMul(x, w2); out a; out b", "MatMul(x, #); MatMul(x, #)",
     "a b"},
    {"two of three siblings",
     "a = MatMul(x, w); b = MatMul(x, w); c = MatMul(x, w); out a; out b; out c",
     "MatMul(x, #); MatMul(x, #)", "a b | a c | b c"},
    {"siblings by a step", "a = Relu(x); b = Tanh(a); c = Exp(a); out b; out c",
     "r = Relu; t = Tanh(r); Exp(r)", "a b c"},
    {"a reader of a sibling", "a = Exp(x); b = Tanh(x); c = Relu(b); out a; out c",
     "b = Tanh(x); c = Relu(b); Exp(x)", "b c a"},
    {"a way around", "a = MatMul(x, w); t = Tanh(a); b = MatMul(x, t); out b",
     "MatMul(x, _); MatMul(x, _)", ""},
    {"a way around a marked one", "a = Relu(x); t = Tanh(a); y = Add(a, t); out y",
     "r! = Relu; Add(r, _)", ""},
    {"a long way around", "a = Relu(x); t = Tanh(a); u = Exp(t); y = Add(a, u); out y",
     "r! = Relu; Add(r, _)", ""},
    {"no way around", "a = Relu(x); t = Tanh(a); y = Add(a, z); out y; out t",
     "r! = Relu; Add(r, _)", "a y"},
};

TEST(FindMatches, Cases) {
  for (const Case& each : kCases) {
    SCOPED_TRACE(each.what);
    TextGraph text(each.graph);
    EXPECT_EQ(matches(text.graph(), each.pattern), each.expected);
  }
}

TEST(FindMatches, GeluOfFiveNodes) {
  TextGraph text(
      "d = Div(x, 1.4142135); e = Erf(d); a = Add(e, 1); m = Mul(x, a); y = Mul(m, 0.5); out y");
  EXPECT_EQ(
      matches(text.graph(),
              "d = Div(x, 1.41421356); e = Erf(d); a = Add(e, 1); m = Mul(x, a); Mul(m, 0.5)"),
      "d e a m y");
}

TEST(FindMatches, BodiesNeedWhatTheyCapture) {
  TextGraph text("a = Conv(x, w); b = Relu(a); c = If(z); out b; out c");
  Graph& graph = text.graph();
  EXPECT_EQ(matches(graph, "c = Conv; Relu(c)"), "a b");
  Body body;
  body.attribute = "then_branch";
  Value inner;
  inner.name = "inner";
  const ValueId id = add_value(body.graph, inner);
  body.graph.captures.push_back({find_value(graph, "a"), id});
  body.graph.outputs.push_back(id);
  graph.nodes[2].bodies.push_back(body);
  EXPECT_EQ(matches(graph, "c = Conv; Relu(c)"), "");
  EXPECT_EQ(matches(graph, "c! = Conv; Relu(c)"), "a b");
}

TEST(FindMatches, RemovedNodesAreNotThere) {
  TextGraph text("a = Relu(x); b = Relu(a); out b");
  text.graph().nodes[0].is_removed = true;
  EXPECT_EQ(matches(text.graph(), "Relu"), "b");
  EXPECT_EQ(matches(text.graph(), "a = Relu; Relu(a)"), "");
}

TEST(FindMatches, Attributes) {
  TextGraph text("y = Softmax(x); out y");
  Attributes& attributes = text.graph().nodes[0].attributes;
  attributes.set("axis", int64_t{-1});
  attributes.set("alpha", 0.2F);
  attributes.set("mode", std::string("linear"));
  attributes.set("pads", std::vector<int64_t>{0, 1});
  attributes.set("scales", std::vector<float>{0.1F, 2});
  attributes.set("activations", std::vector<std::string>{"Tanh", "Relu"});
  attributes.set("empty", std::vector<int64_t>{});
  const std::pair<const char*, bool> cases[] = {
      {"axis=-1", true},
      {"axis=1", false},
      {"axis='-1'", false},
      {"axis=[-1]", false},
      {"alpha=0.2", true},
      {"alpha=0.21", false},
      {"mode='linear'", true},
      {"mode='cubic'", false},
      {"mode=1", false},
      {"pads=[0, 1]", true},
      {"pads=[0]", false},
      {"pads=[0, 2]", false},
      {"scales=[0.1, 2]", true},
      {"scales=[0.1, 3]", false},
      {"scales=['0.1']", false},
      {"activations=['Tanh', 'Relu']", true},
      {"activations=['Tanh']", false},
      {"empty=[]", true},
      {"other=1", false},
      {"axis=-1, mode='linear'", true},
      {"axis=-1, mode='x'", false},
  };
  for (const auto& [constraint, is_match] : cases) {
    const std::string pattern = "Softmax{" + std::string(constraint) + "}(_)";
    EXPECT_EQ(matches(text.graph(), pattern), is_match ? "y" : "") << pattern;
  }
  EXPECT_EQ(matches(text.graph(), "Softmax{axis=0}|Softmax{axis=-1}"), "y");
}

TEST(FindMatches, NumbersOfEveryType) {
  TextGraph text("y = Mul(x, 1); out y");
  Graph& graph = text.graph();
  Tensor& constant = graph[find_value(graph, "1")].constant;
  const auto set = [&](DataType type, auto value, std::vector<int64_t> dims = {}) {
    constant = Tensor::from<decltype(value)>(type, std::move(dims), std::vector{value});
  };
  set(DataType::Float16, Float16(0.044715F));
  EXPECT_EQ(matches(graph, "Mul(_, 0.044715)"), "y");
  EXPECT_EQ(matches(graph, "Mul(_, 0.0448)"), "");
  set(DataType::BFloat16, BFloat16(0.044715F));
  EXPECT_EQ(matches(graph, "Mul(_, 0.044715)"), "y");
  EXPECT_EQ(matches(graph, "Mul(_, 0.0457)"), "");
  set(DataType::Float64, 0.5, {1, 1});
  EXPECT_EQ(matches(graph, "Mul(_, 0.5)"), "y");
  set(DataType::Int64, int64_t{-3});
  EXPECT_EQ(matches(graph, "Mul(_, -3)"), "y");
  EXPECT_EQ(matches(graph, "Mul(_, 3)"), "");
  set(DataType::UInt8, uint8_t{255});
  EXPECT_EQ(matches(graph, "Mul(_, 255)"), "y");
  set(DataType::Float32, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(matches(graph, "Mul(_, -inf)"), "y");
  EXPECT_EQ(matches(graph, "Mul(_, 1)"), "");
  set(DataType::Float32, std::nanf(""));
  EXPECT_EQ(matches(graph, "Mul(_, 0)"), "");
}

TEST(ParsePattern, SaysWhereTheTextIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "character 1: expected a step ('name = Op(inputs)'), found the end"},
      {"  ; Relu", "character 3: expected a step ('name = Op(inputs)'), found ';'"},
      {"Relu(",
       "character 6: expected an input ('_', '#', a number, the name of a step or of a "
       "value, or '...'), found the end"},
      {"Relu(_", "character 7: expected ',' or ')', found the end"},
      {"Relu(_ _)", "character 8: expected ',' or ')', found '_'"},
      {"Relu(_))", "character 8: expected ';' or the end, found ')'"},
      {"Relu(_) Tanh", "character 9: expected ';' or the end, found 'T'"},
      {"Conv(_, ..., _)", "character 12: expected ')', found ','"},
      {"Relu(Conv)",
       "character 6: no earlier step is called 'Conv'; the name of an outside value "
       "begins with a lower-case letter"},
      {"Relu(x.1)", "character 6: no earlier step is called 'x', and only steps have outputs"},
      {"s = Split; Relu(s.)",
       "character 18: expected the number of an output after the '.', from "
       "0 on"},
      {"s = Split; Relu(s.-1)",
       "character 18: expected the number of an output after the '.', "
       "from 0 on"},
      {"s = Split; Relu(s.99999)",
       "character 18: expected the number of an output after the '.', "
       "from 0 on"},
      {"a = Relu; a = Tanh(a)", "character 11: there are two steps 'a'"},
      {"a = Relu(b); b = Tanh(a)", "character 14: step 'b' is read before it is defined"},
      {"a = Relu(a); Tanh(a)", "character 1: step 'a' is read before it is defined"},
      {"a! Relu", "character 4: expected '=', found 'R'"},
      {"a = ", "character 5: expected an op, found the end"},
      {"a = Relu|", "character 10: expected an op, found the end"},
      {"a = org.example(_)",
       "character 16: expected ':' and an op after the domain "
       "'org.example', found '('"},
      {"a = org.example:(_)", "character 17: expected an op, found '('"},
      {"Softmax{axis}", "character 13: expected '=', found '}'"},
      {"Softmax{axis=}",
       "character 14: expected a number, a text in '' or a list in [], found "
       "'}'"},
      {"Softmax{axis=-}", "character 14: expected a number, found '-'"},
      {"Softmax{axis=1", "character 15: expected ',' or '}', found the end"},
      {"Softmax{mode='x}", "character 14: this text has no end: expected \"'\""},
      {"Softmax{pads=[1, 'x']}", "character 18: expected a number, found '''"},
      {"Softmax{pads=[1 2]}", "character 17: expected ',' or ']', found '2'"},
      {"a = Relu(x); b = Tanh(y)",
       "character 1: this step has nothing to do with the last one: "
       "expected that a later step reads it, or that both read one "
       "value that has a name"},
      {"Relu($)",
       "character 6: expected an input ('_', '#', a number, the name of a step or of a "
       "value, or '...'), found '$'"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(error_of([pattern = text] { parse_pattern(pattern); }),
              "InvalidArgument: pattern '" + std::string(text) + "', " + expected);
  }
}

// Every text is either a pattern or an error, and searching for it terminates.
TEST(ParsePattern, AnyTextIsReadOrRefused) {
  const char* const pieces[] = {"a",
                                "b",
                                "x",
                                "Add",
                                "Relu",
                                "Conv",
                                " = ",
                                "(",
                                ")",
                                ", ",
                                "_",
                                "#",
                                "...",
                                "1",
                                "0.5",
                                "-",
                                "; ",
                                "!",
                                "|",
                                ".1",
                                ":",
                                "{",
                                "}",
                                "[",
                                "]",
                                "'",
                                "a = Add(x, x); ",
                                "b = Relu(a); ",
                                "Add(a, b)",
                                "{axis=1}",
                                "\n",
                                "\xff"};
  TextGraph text("a = Add(x, y); b = Relu(a); c = Add(a, b); d = Add(c, 1); out d");
  const PatternIndex index(text.graph());
  std::minstd_rand random(1);
  int read_count = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string pattern;
    const size_t length = 1 + random() % 10;
    for (size_t piece = 0; piece < length; ++piece) pattern += pieces[random() % std::size(pieces)];
    try {
      const Pattern parsed = parse_pattern(pattern);
      ++read_count;
      for (const std::vector<NodeId>& match : find_matches(text.graph(), index, parsed)) {
        EXPECT_EQ(match.size(), parsed.steps.size());
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    }
  }
  EXPECT_GT(read_count, 100);
}

// In graphs of thousands of layers, a naive search would be slow.
TEST(FindMatches, LargeGraphsAreQuick) {
  constexpr int kLayers = 2000;
  Graph graph;
  {
    Value input;
    input.name = "x";
    graph.inputs.push_back(add_value(graph, input));
  }
  ValueId last = graph.inputs[0];
  const auto add = [&](const char* op, std::vector<ValueId> inputs) {
    Node node;
    node.name = "n" + std::to_string(graph.nodes.size());
    node.op = op;
    node.version = 1;
    node.inputs = std::move(inputs);
    Value made;
    made.name = "v" + std::to_string(graph.nodes.size());
    node.outputs.push_back(add_value(graph, made));
    const ValueId output = node.outputs[0];
    graph.nodes.push_back(std::move(node));
    return output;
  };
  for (int layer = 0; layer < kLayers; ++layer) {
    const ValueId conv = add("Conv", {last});
    const ValueId sigmoid = add("Sigmoid", {conv});
    const ValueId swish = add("Mul", {sigmoid, conv});
    const ValueId relu = add("Relu", {swish});
    last = add("Add", {relu, last});
  }
  // One op with thousands of equivalent inputs.
  std::vector<ValueId> many;
  for (int index = 0; index < 3000; ++index) many.push_back(add("Tanh", {last}));
  graph.outputs.push_back(add("Sum", many));
  ASSERT_EQ(explain_illegal(graph), "");

  const auto begin = std::chrono::steady_clock::now();
  const PatternIndex index(graph);
  const auto count = [&](const char* pattern) {
    return find_matches(graph, index, parse_pattern(pattern)).size();
  };
  EXPECT_EQ(count("c = Conv(_); s = Sigmoid(c); Mul(c, s)"), kLayers);
  EXPECT_EQ(count("c = Conv(x); s = Sigmoid(c); m = Mul(c, s); r = Relu(m); Add(r, x)"), kLayers);
  EXPECT_EQ(count("a = Add; c = Conv(a)"), 0);
  EXPECT_EQ(count("a! = Add; c = Conv(a)"), kLayers - 1);
  EXPECT_EQ(count("t = Tanh; Sum(t, x, y, _, ...)"), 3000);
  EXPECT_EQ(count("Sum(#, ...)"), 0);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  // About 50 ms in a release build; minutes if it were quadratic.
  EXPECT_LT(seconds.count(), 10);
}

}  // namespace
}  // namespace tessera
