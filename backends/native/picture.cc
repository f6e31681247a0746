#include "picture.h"

#include <algorithm>

namespace tessera::native {

namespace {

constexpr size_t kSmallestRank = 3;
constexpr size_t kLargestRank = 5;

int64_t lanes_of(PictureLayout layout, int64_t channels) {
  switch (layout) {
    case PictureLayout::Nchw16c:
      return 16;
    case PictureLayout::Nchw8c:
      return 8;
    case PictureLayout::Nhwc:
      return channels;
  }
  return 1;
}

int64_t pixels_of(const std::vector<int64_t>& dims) {
  int64_t pixels = 1;
  for (size_t axis = 2; axis < dims.size(); ++axis) pixels *= dims[axis];
  return pixels;
}

}  // namespace

const char* layout_name(PictureLayout layout) {
  switch (layout) {
    case PictureLayout::Nchw16c:
      return "nchw16c";
    case PictureLayout::Nchw8c:
      return "nchw8c";
    case PictureLayout::Nhwc:
      return "nhwc";
  }
  return "";
}

bool lies_as_picture(PictureLayout layout, const std::vector<int64_t>& dims) {
  if (dims.size() < kSmallestRank || dims.size() > kLargestRank) return false;
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return false;
  const bool is_one_pixel = pixels_of(dims) == 1;
  if (layout == PictureLayout::Nhwc) return !is_one_pixel && dims[1] != 1;
  return !is_one_pixel || dims[1] % lanes_of(layout, dims[1]) != 0;
}

Picture picture_of(PictureLayout layout, const std::vector<int64_t>& dims) {
  Picture picture = {.images = dims[0], .channels = dims[1]};
  picture.pixels = pixels_of(dims);
  picture.lanes = lanes_of(layout, dims[1]);
  picture.blocks = (dims[1] + picture.lanes - 1) / picture.lanes;
  return picture;
}

Picture row_major_picture(const std::vector<int64_t>& dims) {
  Picture picture = {.images = dims[0], .channels = dims[1]};
  picture.blocks = dims[1];
  picture.pixels = pixels_of(dims);
  return picture;
}

Padding padding_of(const Picture& picture) {
  Padding padding;
  padding.pictures = picture.images;
  padding.picture = picture.blocks * picture.pixels * picture.lanes;
  padding.first = (picture.blocks - 1) * picture.pixels * picture.lanes;
  padding.pixels = picture.pixels;
  padding.block = picture.lanes;
  padding.used = picture.channels - (picture.blocks - 1) * picture.lanes;
  return padding;
}

}  // namespace tessera::native
