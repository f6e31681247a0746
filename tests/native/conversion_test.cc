// Conversions between the shared layouts, for each instruction set: every element, the padding, and
// the memory around the result.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/contract/run_context.h"
#include "backend/host.h"
#include "backend/layouts.h"
#include "backend/plugin.h"
#include "base/threads/parallel.h"
#include "each_target.h"
#include "random_graph.h"

namespace tessera {
namespace {

struct MapSizes {
  int64_t images = 1;
  int64_t channels = 1;
  int64_t height = 1;
  int64_t width = 1;
  int64_t pixels() const { return height * width; }
};

int64_t block_of(const std::string& layout) {
  return layout == "nchw8c" ? 8 : layout == "nchw16c" ? 16 : 1;
}

int64_t stored_elements(const std::string& layout, const MapSizes& sizes) {
  const int64_t block = block_of(layout);
  return sizes.images * ((sizes.channels + block - 1) / block * block) * sizes.pixels();
}

int64_t offset_in(const std::string& layout, const MapSizes& sizes, int64_t image, int64_t channel,
                  int64_t pixel) {
  if (layout == "nhwc") return (image * sizes.pixels() + pixel) * sizes.channels + channel;
  const int64_t block = block_of(layout);
  const int64_t blocks = (sizes.channels + block - 1) / block;
  return ((image * blocks + channel / block) * sizes.pixels() + pixel) * block + channel % block;
}

// Calls use(image, channel, pixel, number) for each element; numbers are unique and not 0.
template <class Use>
void for_each_element(const MapSizes& sizes, const Use& use) {
  uint32_t number = 0;
  for (int64_t image = 0; image < sizes.images; ++image) {
    for (int64_t channel = 0; channel < sizes.channels; ++channel) {
      for (int64_t pixel = 0; pixel < sizes.pixels(); ++pixel) use(image, channel, pixel, ++number);
    }
  }
}

std::vector<uint32_t> stored(const std::string& layout, const MapSizes& sizes) {
  std::vector<uint32_t> elements(static_cast<size_t>(stored_elements(layout, sizes)), 0);
  for_each_element(sizes, [&](int64_t image, int64_t channel, int64_t pixel, uint32_t number) {
    elements[static_cast<size_t>(offset_in(layout, sizes, image, channel, pixel))] = number;
  });
  return elements;
}

class NativeConversions : public testing::Test {
 protected:
  NativeConversions() : pool_(2), context_(pool_) {
    plugins_ = {
        Plugin::open(TESSERA_PLUGIN_FOLDER "/backend_native.so", std::make_shared<HostServices>())};
    layouts_ = std::make_unique<LayoutTable>(plugins_);
  }

  // The memory of input and output is as large as the tensors, so that asan finds accesses beside
  // it. `shift`: elements between a cache line and the beginning of the tensors.
  void check(const std::string& from, const std::string& to, const MapSizes& sizes, int64_t shift) {
    SCOPED_TRACE(from + " to " + to + ", " + std::to_string(sizes.images) + "x" +
                 std::to_string(sizes.channels) + "x" + std::to_string(sizes.height) + "x" +
                 std::to_string(sizes.width) + ", shifted by " + std::to_string(shift));
    const TensorType type = {DataType::Float32,
                             {sizes.images, sizes.channels, sizes.height, sizes.width}};
    const std::vector<uint32_t> wanted = stored(to, sizes);
    const std::vector<uint32_t> source = stored(from, sizes);
    Memory input(source.size(), shift);
    Memory output(wanted.size(), shift);
    std::memcpy(input.elements, source.data(), source.size() * sizeof(uint32_t));
    // Not zero, so that padding that is not written differs.
    std::memset(output.elements, 0x55, wanted.size() * sizeof(uint32_t));
    const auto route = layouts_->route(*layouts_->find(from), *layouts_->find(to), type);
    ASSERT_EQ(route.size(), 1U);
    convert(route.front(), "x", context_, buffer(input, source.size(), type),
            buffer(output, wanted.size(), type));
    const int difference =
        std::memcmp(output.elements, wanted.data(), wanted.size() * sizeof(uint32_t));
    EXPECT_EQ(difference, 0);
  }

 private:
  struct Memory {
    Memory(size_t count, int64_t shift)
        : bytes((count + static_cast<size_t>(shift)) * sizeof(uint32_t)),
          owner(::operator new(bytes, std::align_val_t(64)), Delete()),
          elements(static_cast<uint32_t*>(owner.get()) + shift) {}
    struct Delete {
      void operator()(void* memory) const { ::operator delete(memory, std::align_val_t(64)); }
    };
    size_t bytes;
    std::unique_ptr<void, Delete> owner;
    uint32_t* elements;
  };

  static tessera_buffer buffer(const Memory& memory, size_t count, const TensorType& type) {
    tessera_buffer made = {};
    made.data = memory.elements;
    made.bytes = static_cast<int64_t>(count * sizeof(uint32_t));
    made.data_type = static_cast<int32_t>(type.element);
    made.rank = static_cast<int32_t>(type.dims.size());
    made.dims = type.dims.data();
    made.request = TESSERA_REQUEST_WRITE;
    return made;
  }

  ThreadPool pool_;
  RunContext context_;
  std::vector<std::shared_ptr<const Plugin>> plugins_;
  std::unique_ptr<LayoutTable> layouts_;
};

const std::vector<std::string> kLayouts = {"row_major", "nhwc", "nchw8c", "nchw16c"};

std::pair<std::string, std::string> any_direction(Dice& dice) {
  const std::string from = dice.pick(kLayouts);
  std::string to = from;
  while (to == from) to = dice.pick(kLayouts);
  return {from, to};
}

TEST_F(NativeConversions, OfSmallFeatureMaps) {
  for_each_target([&] {
    Dice dice(1);
    for (int count = 0; count < 400; ++count) {
      const auto [from, to] = any_direction(dice);
      const MapSizes sizes = {dice.whole(1, 3), dice.whole(1, dice.one_in(2) ? 20 : 80),
                              dice.whole(1, 20), dice.whole(1, 20)};
      check(from, to, sizes, dice.one_in(2) ? 0 : dice.whole(1, 15));
    }
  });
}

// Large enough for several threads, for tiles of all kinds, and for stores past the caches.
TEST_F(NativeConversions, OfLargeFeatureMaps) {
  const std::vector<MapSizes> kSizes = {{1, 24, 160, 160}, {1, 64, 128, 128}, {1, 255, 57, 57},
                                        {2, 512, 31, 33},  {1, 16, 256, 256}, {1, 1024, 47, 47},
                                        {60, 3, 57, 57},   {1, 2049, 33, 33}};
  for_each_target([&] {
    Dice dice(2);
    for (const MapSizes& sizes : kSizes) {
      const auto [from, to] = any_direction(dice);
      check(from, to, sizes, dice.one_in(3) ? 3 : 0);
      check("nhwc", "row_major", sizes, 0);
      check("row_major", "nhwc", sizes, 0);
    }
  });
}

}  // namespace
}  // namespace tessera
