#include "tessera/tessera_c.h"

#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "base/files/temporary_folder_test.h"
#include "import/onnx/test_models.h"

namespace tessera {
namespace {

// y = x * w, in which both elements of w are 0.5; positions = NonZero(x), whose size is known only
// in a run; the input x is an output too; nothing reads the input 'unread'.
std::string model_bytes() {
  onnx::ModelProto model = onnx_import::make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx_import::add_input(graph, "x", {1, 2});
  onnx_import::name_dimension(graph, 0, 0, "batch");
  onnx_import::add_input(graph, "unread", {7});
  onnx_import::add_weight(graph, "w", {2}, 0.5F);
  onnx_import::add_node(graph, "Mul", {"x", "w"}, {"y"}, "scale");
  onnx_import::add_node(graph, "NonZero", {"x"}, {"positions"}, "find");
  for (const char* name : {"y", "positions", "x"}) onnx_import::add_output(graph, name);
  return model.SerializeAsString();
}

// joined = x followed by y, strings; list = longer, with joined at its end.
std::string model_of_strings() {
  constexpr int kFirstStringConcat = 20;
  onnx::ModelProto model = onnx_import::make_model(kFirstStringConcat);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const char* name : {"x", "y"}) {
    onnx_import::add_input(graph, name, {2});
    graph.mutable_input(graph.input_size() - 1)
        ->mutable_type()
        ->mutable_tensor_type()
        ->set_elem_type(onnx::TensorProto::STRING);
  }
  onnx::ValueInfoProto& list = *graph.add_input();
  list.set_name("list");
  list.mutable_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(onnx::TensorProto::STRING);
  onnx_import::add_node(graph, "StringConcat", {"x", "y"}, {"joined"}, "join");
  onnx_import::add_node(graph, "SequenceInsert", {"list", "joined"}, {"longer"}, "insert");
  for (const char* name : {"joined", "longer"}) onnx_import::add_output(graph, name);
  return model.SerializeAsString();
}

class CInterface : public testing::Test {
 protected:
  void SetUp() override {
    failure_.struct_size = sizeof(failure_);
    ASSERT_EQ(tessera_bind_options_create(&options_, &failure_), TESSERA_OK);
    set("optimize", "off");
    set("threads", "1");
    bind(model_bytes(), "x=2x2");
  }
  void bind(const std::string& bytes, const char* shapes) {
    ASSERT_EQ(tessera_load_bytes(bytes.data(), bytes.size(), nullptr, &model_, &failure_),
              TESSERA_OK);
    if (shapes != nullptr) set("shapes", shapes);
    ASSERT_EQ(tessera_bind(model_, options_, &executor_, &failure_), TESSERA_OK)
        << failure_.where << ": " << failure_.message;
  }
  void TearDown() override {
    tessera_model_destroy(model_);
    tessera_executor_destroy(executor_);  // in either order
    tessera_bind_options_destroy(options_);
  }

  void set(const char* name, const char* text) {
    ASSERT_EQ(tessera_bind_options_set(options_, name, text, &failure_), TESSERA_OK)
        << failure_.message;
  }
  // A tensor of floats over `elements`.
  static tessera_tensor tensor(const char* name, const std::vector<int64_t>& dims,
                               std::vector<float>& elements) {
    return {sizeof(tessera_tensor),
            name,
            TESSERA_FLOAT32,
            static_cast<int32_t>(dims.size()),
            dims.data(),
            elements.data(),
            elements.size() * sizeof(float)};
  }
  std::string told() const {
    return std::string(tessera_kind_name(failure_.kind)) + ": " + failure_.where + ": " +
           failure_.message;
  }
  // Returns the error of a run on one input; "" for no error.
  std::string failure_of_run(const tessera_tensor& input) {
    const int32_t code = tessera_executor_run(executor_, &input, 1, &failure_);
    EXPECT_TRUE(code == TESSERA_OK || code == failure_.kind);
    return code == TESSERA_OK ? "" : told();
  }
  template <class Element>
  static std::vector<Element> elements(const tessera_tensor& result) {
    const auto* const begin = static_cast<const Element*>(result.data);
    return {begin, begin + result.bytes / sizeof(Element)};
  }
  tessera_tensor result(size_t index) {
    tessera_tensor read = {};
    read.struct_size = sizeof(read);
    EXPECT_EQ(tessera_executor_result(executor_, index, &read, &failure_), TESSERA_OK) << told();
    return read;
  }

  tessera_failure failure_ = {};
  tessera_model* model_ = nullptr;
  tessera_bind_options* options_ = nullptr;
  tessera_executor* executor_ = nullptr;
  const std::vector<int64_t> dims_ = {2, 2};
  std::vector<float> x_ = {1, 0, 2, 3};
};

TEST_F(CInterface, DescribesInputsWithNumbersAndSymbols) {
  EXPECT_EQ(tessera_model_input_count(model_), 2U);
  EXPECT_EQ(tessera_model_output_count(model_), 3U);
  tessera_value_description x = {};
  x.struct_size = sizeof(x);
  ASSERT_EQ(tessera_model_input(model_, 0, &x, &failure_), TESSERA_OK);
  EXPECT_STREQ(x.name, "x");
  EXPECT_EQ(x.data_type, TESSERA_FLOAT32);
  ASSERT_EQ(x.rank, 2);
  EXPECT_EQ(x.dims[0], -1);
  EXPECT_EQ(x.dims[1], 2);
  EXPECT_STREQ(x.symbols[0], "batch");
  EXPECT_STREQ(x.symbols[1], "");
  EXPECT_EQ(x.is_read, 1);
  EXPECT_STREQ(x.text, "float32 batchx2");
  tessera_value_description bound = {};
  bound.struct_size = sizeof(bound);
  ASSERT_EQ(tessera_executor_input(executor_, 0, &bound, &failure_), TESSERA_OK);
  EXPECT_EQ(bound.dims[0], 2);
  ASSERT_EQ(tessera_model_input(model_, 1, &x, &failure_), TESSERA_OK);
  EXPECT_EQ(x.is_read, 0);
  EXPECT_EQ(tessera_model_input(model_, 2, &x, &failure_), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(
      told(),
      "InvalidArgument: argument 'index': expected less than 2, the number of inputs, found 2");
}

TEST_F(CInterface, RunsAndSaysHowLargeOutputsAre) {
  ASSERT_EQ(failure_of_run(tensor("x", dims_, x_)), "");
  EXPECT_THAT(elements<float>(result(0)), ElementsAre(0.5F, 0, 1, 1.5F));
  const tessera_tensor positions = result(1);
  EXPECT_STREQ(positions.name, "positions");
  EXPECT_EQ(positions.data_type, TESSERA_INT64);
  ASSERT_EQ(positions.rank, 2);
  EXPECT_EQ(positions.dims[1], 3);
  EXPECT_THAT(elements<int64_t>(positions), ElementsAre(0, 1, 1, 0, 0, 1));
}

TEST_F(CInterface, ResultsDoNotPointIntoMemoryOfInputs) {
  ASSERT_EQ(failure_of_run(tensor("x", dims_, x_)), "");
  const std::vector<float> before = x_;
  std::fill(x_.begin(), x_.end(), -1.0F);
  EXPECT_EQ(elements<float>(result(2)), before);
}

TEST_F(CInterface, ResultsDoNotPointIntoMemoryOfBoundInputs) {
  const tessera_tensor input = tensor("x", dims_, x_);
  ASSERT_EQ(tessera_executor_bind_input(executor_, &input, &failure_), TESSERA_OK);
  ASSERT_EQ(tessera_executor_run(executor_, nullptr, 0, &failure_), TESSERA_OK) << told();
  const std::vector<float> before = x_;
  std::fill(x_.begin(), x_.end(), -1.0F);
  EXPECT_EQ(elements<float>(result(2)), before);
  // A bound output is where the caller wants it.
  std::vector<float> same(4);
  const tessera_tensor output = tensor("x", dims_, same);
  ASSERT_EQ(tessera_executor_bind_output(executor_, &output, &failure_), TESSERA_OK);
  ASSERT_EQ(tessera_executor_run(executor_, nullptr, 0, &failure_), TESSERA_OK) << told();
  EXPECT_EQ(result(2).data, same.data());
  EXPECT_EQ(same, x_);
}

TEST_F(CInterface, RunsOnNewShapes) {
  std::vector<float> row = {4, 6};
  const std::vector<int64_t> dims = {1, 2};
  ASSERT_EQ(failure_of_run(tensor("x", dims, row)), "");
  EXPECT_THAT(elements<float>(result(0)), ElementsAre(2, 3));
  tessera_value_description y = {};
  y.struct_size = sizeof(y);
  ASSERT_EQ(tessera_executor_output(executor_, 0, &y, &failure_), TESSERA_OK);
  EXPECT_EQ(y.dims[0], 1);
}

TEST_F(CInterface, RunsInMemoryOfTheCaller) {
  std::vector<float> y(4);
  const tessera_tensor input = tensor("x", dims_, x_);
  const tessera_tensor output = tensor("y", dims_, y);
  ASSERT_EQ(tessera_executor_bind_input(executor_, &input, &failure_), TESSERA_OK) << told();
  ASSERT_EQ(tessera_executor_bind_output(executor_, &output, &failure_), TESSERA_OK) << told();
  ASSERT_EQ(tessera_executor_run(executor_, nullptr, 0, &failure_), TESSERA_OK) << told();
  EXPECT_THAT(y, ElementsAre(0.5F, 0, 1, 1.5F));
  EXPECT_EQ(result(0).data, y.data());
  // An output of unknown size cannot be bound, so not everything is.
  EXPECT_EQ(tessera_executor_run_bound(executor_, &failure_), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_executor_clear_bindings(executor_, &failure_), TESSERA_OK);
  EXPECT_EQ(tessera_executor_run(executor_, nullptr, 0, &failure_), TESSERA_INVALID_ARGUMENT);
  EXPECT_THAT(told(), HasSubstr("input 'x': expected a tensor (float32 2x2), found none given"));
}

class CInterfaceOfStrings : public CInterface {
 protected:
  void SetUp() override {
    failure_.struct_size = sizeof(failure_);
    ASSERT_EQ(tessera_bind_options_create(&options_, &failure_), TESSERA_OK);
    set("optimize", "off");
    bind(model_of_strings(), nullptr);
  }

  static tessera_tensor strings(const char* name, std::vector<tessera_string>& texts) {
    static const int64_t kDims[] = {2};
    return {sizeof(tessera_tensor),
            name,
            TESSERA_STRING,
            1,
            kDims,
            texts.data(),
            texts.size() * sizeof(tessera_string)};
  }
  static tessera_tensor list(const char* name, const std::vector<int64_t>& dims,
                             std::vector<tessera_tensor>& tensors) {
    return {sizeof(tessera_tensor),
            name,
            TESSERA_SEQUENCE,
            1,
            dims.data(),
            tensors.data(),
            tensors.size() * sizeof(tessera_tensor)};
  }
  static std::vector<std::string> texts(const tessera_tensor& shown) {
    EXPECT_EQ(shown.data_type, TESSERA_STRING);
    std::vector<std::string> all;
    for (const tessera_string& each : elements<tessera_string>(shown)) {
      EXPECT_EQ(each.text[each.bytes], '\0');
      all.emplace_back(each.text, each.bytes);
    }
    return all;
  }

  std::vector<tessera_string> left_ = {{"a", 1}, {"bc", 1}};
  std::vector<tessera_string> right_ = {{nullptr, 0}, {"\0z", 2}};
  std::vector<tessera_tensor> tensors_ = {strings(nullptr, left_)};
  const std::vector<int64_t> one_ = {1};
};

TEST_F(CInterfaceOfStrings, GoInAndOutAlsoInLists) {
  std::array<tessera_tensor, 3> inputs = {strings("x", left_), strings("y", right_),
                                          list("list", one_, tensors_)};
  ASSERT_EQ(tessera_executor_run(executor_, inputs.data(), inputs.size(), &failure_), TESSERA_OK)
      << told();
  const std::vector<std::string> joined = {"a", std::string("b\0z", 3)};
  EXPECT_EQ(texts(result(0)), joined);
  const tessera_tensor longer = result(1);
  EXPECT_EQ(longer.data_type, TESSERA_SEQUENCE);
  ASSERT_EQ(longer.rank, 1);
  ASSERT_EQ(longer.dims[0], 2);
  const auto members = elements<tessera_tensor>(longer);
  EXPECT_THAT(texts(members[0]), ElementsAre("a", "b"));
  EXPECT_EQ(texts(members[1]), joined);
  // Asked again, the same arrays.
  EXPECT_EQ(result(1).data, longer.data);
}

TEST_F(CInterfaceOfStrings, RefuseWhatCannotBe) {
  const auto failure = [&](tessera_tensor x, tessera_tensor third) {
    std::array<tessera_tensor, 3> inputs = {x, strings("y", right_), third};
    EXPECT_NE(tessera_executor_run(executor_, inputs.data(), inputs.size(), &failure_), TESSERA_OK);
    return told();
  };
  const tessera_tensor good = strings("x", left_);
  const tessera_tensor whole = list("list", one_, tensors_);
  left_[1].text = nullptr;
  EXPECT_THAT(failure(good, whole), HasSubstr("bytes of text as element 1, found NULL"));
  left_[1].text = "b";
  tensors_[0].struct_size = 3;
  EXPECT_THAT(failure(good, whole), HasSubstr("found"));
  tensors_[0] = strings(nullptr, left_);
  tensors_[0].data_type = 77;
  EXPECT_THAT(failure(good, whole),
              HasSubstr("input 'list'[0]: expected the data_type of a tensor"));
  tensors_[0] = whole;  // a list in itself, without an end
  EXPECT_THAT(failure(good, whole), HasSubstr("at most 32 lists in one another"));
  std::vector<float> numbers = {1, 2};
  const std::vector<int64_t> two = {2};
  EXPECT_THAT(failure(tensor("x", two, numbers), list("list", one_, tensors_)), HasSubstr("input"));
}

TEST_F(CInterface, AFailedRunLeavesNoResult) {
  ASSERT_EQ(failure_of_run(tensor("x", dims_, x_)), "");
  EXPECT_THAT(failure_of_run(tensor("z", dims_, x_)), HasSubstr("input 'z'"));
  tessera_tensor read = {};
  read.struct_size = sizeof(read);
  EXPECT_EQ(tessera_executor_result(executor_, 0, &read, &failure_), TESSERA_INVALID_ARGUMENT);
  EXPECT_THAT(told(), HasSubstr("result 0: expected that tessera_executor_run() succeeded before"));
}

TEST_F(CInterface, RefusesTensorsThatCannotBe) {
  const tessera_tensor good = tensor("x", dims_, x_);
  const std::vector<int64_t> negative = {-2, 2};
  struct Case {
    const char* expected;
    void (*spoil)(tessera_tensor& tensor, const int64_t* negative);
  };
  const Case cases[] = {
      {"argument 'inputs[0]': expected a struct_size of at least",
       [](tessera_tensor& tensor, const int64_t*) { tensor.struct_size = 0; }},
      {"found 1152921504606846976; set it to sizeof",
       [](tessera_tensor& tensor, const int64_t*) { tensor.struct_size = size_t{1} << 60; }},
      {"argument 'inputs[0].name': expected the name of a value, found NULL",
       [](tessera_tensor& tensor, const int64_t*) { tensor.name = nullptr; }},
      {"input 'x': expected the data_type of a tensor, from TESSERA_BOOL (1)",
       [](tessera_tensor& tensor, const int64_t*) { tensor.data_type = TESSERA_MAP + 1; }},
      {"input 'x': expected 64 bytes for string 2x2, found 16",
       [](tessera_tensor& tensor, const int64_t*) { tensor.data_type = TESSERA_STRING; }},
      {"input 'x': expected a list, of rank 1, found rank 2",
       [](tessera_tensor& tensor, const int64_t*) { tensor.data_type = TESSERA_SEQUENCE; }},
      {"input 'x': expected keys and values of a map, of shape 2, found 2x2",
       [](tessera_tensor& tensor, const int64_t*) { tensor.data_type = TESSERA_MAP; }},
      {"found -1", [](tessera_tensor& tensor, const int64_t*) { tensor.data_type = -1; }},
      {"input 'x': expected 32 bytes for float64 2x2, found 16",
       [](tessera_tensor& tensor, const int64_t*) { tensor.data_type = TESSERA_FLOAT64; }},
      {"input 'x': expected a rank from 0 to 1024, found -1",
       [](tessera_tensor& tensor, const int64_t*) { tensor.rank = -1; }},
      {"input 'x': expected 2 dims, found NULL",
       [](tessera_tensor& tensor, const int64_t*) { tensor.dims = nullptr; }},
      {"input 'x': expected dims of at least 0",
       [](tessera_tensor& tensor, const int64_t* dims) { tensor.dims = dims; }},
      {"input 'x': expected 16 bytes for float32 2x2, found 12",
       [](tessera_tensor& tensor, const int64_t*) { tensor.bytes = 12; }},
      {"input 'x': expected 16 bytes of data, found NULL",
       [](tessera_tensor& tensor, const int64_t*) { tensor.data = nullptr; }},
      {"input 'x': expected data at a multiple of 4 bytes",
       [](tessera_tensor& tensor, const int64_t*) {
         tensor.data = static_cast<char*>(tensor.data) + 1;
       }},
  };
  for (const Case& row : cases) {
    tessera_tensor wrong = good;
    row.spoil(wrong, negative.data());
    EXPECT_THAT(failure_of_run(wrong), HasSubstr(row.expected));
  }
  const std::array<tessera_tensor, 2> twice = {good, good};
  EXPECT_EQ(tessera_executor_run(executor_, twice.data(), 2, &failure_), TESSERA_INVALID_ARGUMENT);
  EXPECT_THAT(told(), HasSubstr("input 'x': expected one tensor, found two"));
  EXPECT_EQ(failure_of_run(good), "");
  std::vector<float> seven(7);
  const std::vector<int64_t> dims = {7};
  const std::array<tessera_tensor, 2> unknown = {good, tensor("unred", dims, seven)};
  EXPECT_EQ(tessera_executor_run(executor_, unknown.data(), 2, &failure_),
            TESSERA_INVALID_ARGUMENT);
  EXPECT_THAT(told(), HasSubstr("input 'unred': the model has no such input; it has 'x', 'unread'; "
                                "did you mean 'unread'?"));
}

TEST_F(CInterface, RefusesNull) {
  tessera_model* model = nullptr;
  tessera_executor* executor = nullptr;
  const auto expect = [&](int32_t code, const char* expected) {
    EXPECT_EQ(code, TESSERA_INVALID_ARGUMENT);
    EXPECT_THAT(told(), HasSubstr(expected));
  };
  expect(tessera_load(nullptr, nullptr, &model, &failure_),
         "argument 'file': expected the name of a file, found NULL");
  expect(tessera_load("x", nullptr, nullptr, &failure_), "argument 'model'");
  expect(tessera_load_bytes(nullptr, 1, nullptr, &model, &failure_), "argument 'bytes'");
  expect(tessera_bind(nullptr, nullptr, &executor, &failure_), "argument 'model'");
  expect(tessera_bind(model_, nullptr, nullptr, &failure_), "argument 'executor'");
  expect(tessera_bind_options_create(nullptr, &failure_), "argument 'options'");
  expect(tessera_bind_options_set(nullptr, "threads", "1", &failure_), "argument 'options'");
  expect(tessera_bind_options_set(options_, nullptr, "1", &failure_), "argument 'name'");
  expect(tessera_bind_options_set(options_, "threads", nullptr, &failure_), "argument 'text'");
  expect(tessera_bind_options_add_tuning_input(options_, nullptr, &failure_), "argument 'tensor'");
  expect(tessera_model_input(model_, 0, nullptr, &failure_), "argument 'description'");
  expect(tessera_executor_run(nullptr, nullptr, 0, &failure_), "argument 'executor'");
  expect(tessera_executor_run(executor_, nullptr, 1, &failure_), "argument 'inputs[0]'");
  expect(tessera_executor_bind_input(executor_, nullptr, &failure_), "argument 'input'");
  expect(tessera_executor_bind_output(executor_, nullptr, &failure_), "argument 'output'");
  expect(tessera_executor_save_cache(executor_, nullptr, "all", 0, &failure_), "argument 'file'");
  expect(tessera_model_load_cache(model_, nullptr, "all", &failure_), "argument 'file'");
  // Without a place for the failure, the code remains.
  EXPECT_EQ(tessera_load(nullptr, nullptr, &model, nullptr), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(model, nullptr);
  tessera_model_destroy(nullptr);
  tessera_executor_destroy(nullptr);
  tessera_bind_options_destroy(nullptr);
  tessera_executor_cancel(nullptr);
  EXPECT_EQ(tessera_model_input_count(nullptr), 0U);
  EXPECT_EQ(tessera_executor_output_count(nullptr), 0U);
}

TEST_F(CInterface, AStructThatIsTooSmallIsNotWritten) {
  tessera_failure small = {};
  small.struct_size = 8;
  small.kind = -5;
  EXPECT_EQ(tessera_load(nullptr, nullptr, nullptr, &small), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(small.kind, -5);
  tessera_value_description description = {};
  EXPECT_EQ(tessera_model_input(model_, 0, &description, &failure_), TESSERA_INVALID_ARGUMENT);
  EXPECT_THAT(told(), HasSubstr("set it to sizeof of the struct"));
  EXPECT_EQ(description.name, nullptr);
}

// The options of a program that was built with a later header.
struct LaterOptions {
  tessera_load_options known = {};
  int64_t later = 0;
};

TEST_F(CInterface, ALaterStructIsReadUnlessItsNewMembersAreSet) {
  const std::string bytes = model_bytes();
  LaterOptions later;
  later.known.struct_size = sizeof(later);
  later.known.threads = 1;
  tessera_model* model = nullptr;
  EXPECT_EQ(tessera_load_bytes(bytes.data(), bytes.size(), &later.known, &model, &failure_),
            TESSERA_OK);
  tessera_model_destroy(model);
  later.later = 1;
  EXPECT_EQ(tessera_load_bytes(bytes.data(), bytes.size(), &later.known, &model, &failure_),
            TESSERA_INVALID_ARGUMENT);
  EXPECT_THAT(told(), HasSubstr("use a newer library"));
}

TEST_F(CInterface, ErrorsHaveKindPlaceAndMessage) {
  tessera_model* model = nullptr;
  EXPECT_EQ(tessera_load("/nowhere/model.onnx", nullptr, &model, &failure_),
            TESSERA_INVALID_ARGUMENT);
  EXPECT_THAT(std::string(failure_.where) + failure_.message, HasSubstr("/nowhere/model.onnx"));
  EXPECT_EQ(tessera_load_bytes("no model", 8, nullptr, &model, &failure_), TESSERA_INVALID_MODEL);
  tessera_load_options options = {};
  options.struct_size = sizeof(options);
  options.backend_paths = "/nowhere";
  EXPECT_EQ(tessera_load("x", &options, &model, &failure_), TESSERA_INVALID_ARGUMENT);
  EXPECT_THAT(told(), HasSubstr("backend path '/nowhere'"));
  options = {.struct_size = sizeof(options), .threads = -1};
  EXPECT_EQ(tessera_load("x", &options, &model, &failure_), TESSERA_INVALID_ARGUMENT);
  EXPECT_THAT(told(), HasSubstr("options.threads"));
  EXPECT_EQ(model, nullptr);
  EXPECT_STREQ(tessera_kind_name(TESSERA_CACHE_MISS), "CacheMiss");
  EXPECT_STREQ(tessera_kind_name(TESSERA_OK), "OK");
  EXPECT_STREQ(tessera_kind_name(10), "unknown");
}

TEST_F(CInterface, LongTextsAreCutBetweenLetters) {
  std::string name;
  while (name.size() < 3 * sizeof(failure_.where)) name += "\xC3\xA4";  // a with dots
  EXPECT_EQ(tessera_bind_options_set(options_, name.c_str(), "1", &failure_),
            TESSERA_INVALID_ARGUMENT);
  const std::string where = failure_.where;
  EXPECT_LT(where.size(), sizeof(failure_.where));
  EXPECT_THAT(where, StartsWith("option '\xC3\xA4"));
  EXPECT_TRUE(where.ends_with("\xC3\xA4"));
}

TEST_F(CInterface, ListsTheOptionsThatItSets) {
  const size_t count = tessera_bind_option_count();
  EXPECT_GT(count, 20U);
  for (size_t index = 0; index < count; ++index) {
    EXPECT_STRNE(tessera_bind_option_name(index), "");
    EXPECT_STRNE(tessera_bind_option_text(index), "");
  }
  EXPECT_EQ(tessera_bind_option_name(count), nullptr);
  EXPECT_EQ(tessera_bind_option_text(count), nullptr);
}

TEST_F(CInterface, CachesAreSavedAndLoaded) {
  const TemporaryFolder folder;
  const std::string file = folder / "model.cache";
  EXPECT_EQ(tessera_executor_save_cache(executor_, file.c_str(), nullptr, 0, &failure_),
            TESSERA_INVALID_ARGUMENT)
      << "it was bound without optimize";
  set("optimize", "now");
  set("cache_dir", folder.path().c_str());
  set("in_process", "true");
  set("backends", "reference");
  tessera_executor* measured = nullptr;
  ASSERT_EQ(tessera_bind(model_, options_, &measured, &failure_), TESSERA_OK) << told();
  ASSERT_EQ(tessera_executor_save_cache(measured, file.c_str(), nullptr, 0, &failure_), TESSERA_OK)
      << told();
  EXPECT_EQ(tessera_executor_save_cache(measured, file.c_str(), "no_backend", 0, &failure_),
            TESSERA_INVALID_ARGUMENT);
  ASSERT_EQ(tessera_model_load_cache(model_, file.c_str(), "all", &failure_), TESSERA_OK) << told();
  ASSERT_EQ(tessera_executor_load_cache(measured, file.c_str(), nullptr, &failure_), TESSERA_OK)
      << told();
  EXPECT_EQ(tessera_executor_load_cache(measured, "/nowhere", nullptr, &failure_),
            TESSERA_INVALID_ARGUMENT);
  tessera_executor_destroy(measured);
}

TEST_F(CInterface, ATimeLimitIsNotNegative) {
  EXPECT_EQ(tessera_executor_set_time_limit(executor_, -1, &failure_), TESSERA_INVALID_ARGUMENT);
  ASSERT_EQ(tessera_executor_set_time_limit(executor_, 1000, &failure_), TESSERA_OK);
  tessera_executor_cancel(executor_);  // without a run, nothing happens
  EXPECT_EQ(failure_of_run(tensor("x", dims_, x_)), "");
}

}  // namespace
}  // namespace tessera
