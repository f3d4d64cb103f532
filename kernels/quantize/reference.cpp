// SPDX-License-Identifier: Apache-2.0
// Quantisation on the host, in the f32 operations and by the offsets that the contract names.
#include "kernels/quantize/reference.h"

#include "tilewright/number_formats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace tilewright {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float largest_of(std::span<const float> group) {
  float largest = 0;
  for (float value : group) {
    if (std::isnan(value)) return value;
    largest = std::fmax(largest, std::fabs(value));
  }
  return largest;
}

unsigned code_of(Type element, float value) {
  return element == e2m1   ? f32_to_e2m1(value)
         : element == e5m2 ? f32_to_e5m2(value)
                           : f32_to_e4m3(value);
}

float largest_code(Type element) {
  return element == e2m1 ? 6.0f : element == e5m2 ? 57344.0f : 448.0f;
}

/// A tensor of codes from its quotients, in order.
class Codes {
 public:
  Codes(Type element, std::vector<std::int64_t> shape) : type_(element), shape_(std::move(shape)) {
    values_.reserve(static_cast<std::size_t>(element_count(shape_)));
  }
  void push(float quotient) { values_.push_back(quotient); }
  Type type() const { return type_; }
  Array array(Quotients quotients) const {
    return quotients == Quotients::rounded ? rounded() : unrounded();
  }

 private:
  Array rounded() const {
    Array q = make_array("q", type_, shape_);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const unsigned code = code_of(type_, values_[i]);
      if (type_ == e2m1) {
        q.bytes[i / 2] |= static_cast<std::byte>(i % 2 == 0 ? code : code << 4);
      } else {
        q.bytes[i] = static_cast<std::byte>(code);
      }
    }
    return q;
  }
  Array unrounded() const {
    std::vector<double> cut(values_.begin(), values_.end());
    const auto most = static_cast<double>(largest_code(type_));
    for (double& value : cut)
      value = std::isnan(value) ? value : std::clamp(value, -most, most);
    return make_array("q", f64, shape_, cut);
  }

  Type type_;
  std::vector<std::int64_t> shape_;
  std::vector<float> values_;
};

void quantise_fp8(std::span<const float> group, float s, bool exact, Codes& codes) {
  float inverse = 1.0f / s;
  for (float value : group)
    codes.push(exact ? value / s : value * inverse);
}

float fp8_scale(std::span<const float> group, const QuantizeOptions& options, Type scale_type) {
  float largest = largest_of(group);
  if (largest > options.scale_ub) largest = options.scale_ub;
  float s = (largest < options.floor ? options.floor : largest) / 448.0f;
  const bool power = scale_type == ue8m0 || options.pow2_scale;
  if (!power || std::isnan(s)) return s;
  return ue8m0_to_f32(f32_to_ue8m0(s, PowerRounding::up));
}

/// k + 127 of OCP MX.
int power_code(ScaleRule rule, Type element, float largest) {
  const int exponent = element == e2m1 ? 2 : element == e5m2 ? 15 : 8;
  const float most = largest_code(element);
  const int mantissa = element == e2m1 ? 1 : element == e5m2 ? 2 : 3;
  if (rule == ScaleRule::ceil) return f32_to_ue8m0(largest / most, PowerRounding::up);
  if (largest == 0) return 0;
  auto amax = static_cast<double>(largest);
  int k = std::ilogb(amax);
  if (rule == ScaleRule::even) k = std::ilogb(amax + std::ldexp(0.5, k - mantissa));
  return std::max(k - exponent + 127, 0);
}

float mx_scale(std::span<const float> group, ScaleRule rule, Type element) {
  const float largest = largest_of(group);
  if (!std::isfinite(largest)) return kNan;
  return std::ldexp(1.0f, power_code(rule, element, largest) - 127);
}

void quantise_mx(std::span<const float> group, float s, Codes& codes) {
  const float inverse = std::isnan(s) ? 0 : std::ldexp(1.0f, -std::ilogb(s));
  for (float value : group)
    codes.push(std::isnan(s) ? 0 : value * inverse);
}

float nvfp4_scale(std::span<const float> group, float encode_scale) {
  const float largest = largest_of(group);
  const float sixth = largest / 6.0f;
  return std::isfinite(largest) ? e4m3_to_f32(f32_to_e4m3(sixth * encode_scale)) : kNan;
}

void quantise_nvfp4(std::span<const float> group, float s, float encode_scale, bool exact,
                    Codes& codes) {
  float inverse = s == 0 ? 0 : 1.0f / s;
  for (float value : group) {
    float scaled = value * encode_scale;
    bool by_division = exact && s != 0;
    float quotient = by_division ? scaled / s : scaled * inverse;
    codes.push(std::isnan(s) ? 0.0f : quotient);
  }
}

/// Where a layout has the scale of a group, as the contract writes it.
std::int64_t offset_of(ScaleLayout layout, std::int64_t m, std::int64_t k, std::int64_t groups_m,
                       std::int64_t groups_n) {
  const std::int64_t rows = (groups_m + 3) / 4 * 4;
  const std::int64_t words = (groups_n + 3) / 4;
  switch (layout) {
    case ScaleLayout::row:
      break;
    case ScaleLayout::column_tma:
      return k * rows + m;
    case ScaleLayout::packed_ue8m0:
      return (k / 4 * rows + m) * 4 + k % 4;
    case ScaleLayout::swizzle_128x4:
      return (m / 128 * words + k / 4) * 512 + m % 32 * 16 + m % 128 / 32 * 4 + k % 4;
    case ScaleLayout::swizzle_8x4:
      return (m / 8 * words + k / 4) * 32 + m % 8 * 4 + k % 4;
  }
  return m * groups_n + k;
}

/// The scales of [groups_m, groups_n] groups as a layout has them, padding included.
Array placed(const std::vector<double>& scales, Type type, ScaleLayout layout,
             std::int64_t groups_m, std::int64_t groups_n) {
  const std::vector<std::int64_t> shape = scales_shape(layout, groups_m, groups_n);
  const double padding = layout == ScaleLayout::column_tma ? 1 : type == ue8m0 ? 0x1p-127 : 0;
  std::vector<double> values(static_cast<std::size_t>(element_count(shape)), padding);
  for (std::int64_t m = 0; m < groups_m; ++m) {
    for (std::int64_t k = 0; k < groups_n; ++k) {
      values[static_cast<std::size_t>(offset_of(layout, m, k, groups_m, groups_n))] =
          scales[static_cast<std::size_t>(m * groups_n + k)];
    }
  }
  return make_array("scales", type, shape, values);
}

/// Scales of 128 x 128 elements, as [ceil(T / 128), ceil(H / 128)].
Array quantise_block2d(std::span<const float> values, std::int64_t h,
                       const QuantizeOptions& options, Type scale_type, Codes& codes) {
  const std::int64_t t = static_cast<std::int64_t>(values.size()) / h;
  const std::int64_t across = (h + 127) / 128;
  std::vector<std::vector<float>> tiles(static_cast<std::size_t>((t + 127) / 128 * across));
  auto tile_of = [&](std::size_t i) {
    const auto at = static_cast<std::int64_t>(i);
    return static_cast<std::size_t>(at / h / 128 * across + at % h / 128);
  };
  for (std::size_t i = 0; i < values.size(); ++i)
    tiles[tile_of(i)].push_back(values[i]);
  std::vector<double> scales;
  scales.reserve(tiles.size());
  for (const std::vector<float>& tile : tiles)
    scales.push_back(static_cast<double>(fp8_scale(tile, options, scale_type)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto s = static_cast<float>(scales[tile_of(i)]);
    quantise_fp8(values.subspan(i, 1), s, options.exact, codes);
  }
  return make_array("scales", scale_type, {(t + 127) / 128, across}, scales);
}

/// Groups of nvfp4 whose scale would be above all of e4m3: 448, and what is rounded to it.
void count_saturated(std::span<const float> largest, float encode_scale, HostTensors& tensors) {
  const Array* before = tensors.find("saturated");
  if (before == nullptr) return;
  double count = to_doubles(*before).front();
  for (float amax : largest) {
    float sixth = amax / 6.0f;
    if (std::isfinite(amax) && sixth * encode_scale > 464.0f) ++count;
  }
  tensors.set(make_array("saturated", u32, {1}, std::array{count}));
}

double number(const HostTensors& tensors, const char* name) {
  return to_doubles(tensors.at(name)).front();
}

}  // namespace

void quantize_reference(const QuantizeOptions& options, Type element, Type scale_type,
                        HostTensors& tensors, Quotients quotients, const Array* taken) {
  const Array& x = tensors.at("x");
  const std::vector<double> doubles = to_doubles(x);
  const std::vector<float> values(doubles.begin(), doubles.end());
  const std::int64_t h = x.shape.back();
  const auto group = static_cast<std::size_t>(group_elems(options.format, h, options.group));
  const bool whole = options.format == QuantFormat::fp8_tensor;
  const bool given = tensors.find("scale") != nullptr;
  const float of_tensor = !whole  ? 0
                          : given ? static_cast<float>(number(tensors, "scale"))
                                  : fp8_scale(values, options, f32);
  Codes codes(element, x.shape);
  if (options.format == QuantFormat::fp8_block2d) {
    tensors.set(quantise_block2d(values, h, options, scale_type, codes));
    tensors.set(codes.array(quotients));
    return;
  }
  const std::vector<double> taken_scales =
      taken == nullptr ? std::vector<double>{} : to_doubles(*taken);
  const auto encode = options.format == QuantFormat::nvfp4
                          ? static_cast<float>(number(tensors, "encode_scale"))
                          : 0.0f;
  std::vector<double> scales;
  std::vector<float> largest;  // of nvfp4's groups
  const auto width = static_cast<std::size_t>(h);
  const std::size_t groups_n = h == 0 ? 0 : (width + group - 1) / group;
  const std::int64_t rows = h == 0 ? 0 : static_cast<std::int64_t>(values.size()) / h;
  auto scale_of = [&](std::span<const float> one) {
    if (is_mx(options.format)) return mx_scale(one, options.rule, element);
    if (options.format == QuantFormat::nvfp4) return nvfp4_scale(one, encode);
    return fp8_scale(one, options, scale_type);
  };
  for (std::size_t g = 0; h > 0 && g < values.size() / width * groups_n; ++g) {
    const std::size_t in_row = g % groups_n * group;
    const auto one =
        std::span(values).subspan(g / groups_n * width + in_row, std::min(group, width - in_row));
    float s = whole ? of_tensor : scale_of(one);
    if (taken != nullptr && !whole) {
      const std::int64_t at = offset_of(options.layout, static_cast<std::int64_t>(g / groups_n),
                                        static_cast<std::int64_t>(g % groups_n), rows,
                                        static_cast<std::int64_t>(groups_n));
      s = static_cast<float>(taken_scales[static_cast<std::size_t>(at)]);
    }
    if (is_mx(options.format)) {
      quantise_mx(one, s, codes);
    } else if (options.format == QuantFormat::nvfp4) {
      quantise_nvfp4(one, s, encode, options.exact, codes);
      largest.push_back(largest_of(one));
    } else {
      quantise_fp8(one, s, options.exact, codes);
    }
    scales.push_back(static_cast<double>(s));
  }
  if (options.format == QuantFormat::nvfp4) count_saturated(largest, encode, tensors);
  const bool a_row = options.format == QuantFormat::fp8_token;
  if (whole) {
    tensors.set(make_array("scales", f32, {1}, std::vector{static_cast<double>(of_tensor)}));
  } else if (options.layout != ScaleLayout::row || a_row) {
    Array all =
        placed(scales, scale_type, options.layout, rows, static_cast<std::int64_t>(groups_n));
    if (a_row) all.shape = {rows};
    tensors.set(std::move(all));
  } else {
    std::vector<std::int64_t> shape = x.shape;
    shape.back() = static_cast<std::int64_t>(groups_n);
    tensors.set(make_array("scales", scale_type, shape, scales));
  }
  tensors.set(codes.array(quotients));
}

void leave_rows_open(const QuantizeOptions& options, std::int64_t first, HostTensors& tensors) {
  Array q = tensors.at("q");
  const Array scales = tensors.at("scales");
  const std::int64_t t = q.shape[0], h = q.shape[1];
  const auto nan = static_cast<double>(kNan);
  std::vector<double> numbers = to_doubles(q);
  std::fill(numbers.begin() + std::min(first, t) * h, numbers.end(), nan);
  tensors.set(make_array("q", f64, q.shape, numbers));
  if (options.format == QuantFormat::fp8_tensor) return;
  const std::int64_t group =
      std::max<std::int64_t>(1, group_elems(options.format, h, options.group));
  const std::int64_t groups_n = (h + group - 1) / group;
  const std::int64_t rows = group_rows(options.format, t);  // under one scale
  const std::int64_t groups_m = (t + rows - 1) / rows;
  std::vector<double> values = to_doubles(scales);
  for (std::int64_t m = (first + rows - 1) / rows; m < groups_m; ++m) {
    for (std::int64_t k = 0; k < padded_groups(options.layout, groups_n); ++k)
      values[static_cast<std::size_t>(offset_of(options.layout, m, k, groups_m, groups_n))] = nan;
  }
  tensors.set(make_array("scales", scales.type, scales.shape, values));
}

void dequantize_reference(const DequantizeOptions& options, HostTensors& tensors) {
  const Array& q = tensors.at("q");
  std::vector<double> y = to_doubles(q);
  const std::vector<double> scales = to_doubles(tensors.at("scales"));
  const std::int64_t h = q.shape.back();
  const std::int64_t group = group_elems(options.format, h, options.group);
  const std::int64_t groups_n = (h + group - 1) / group;
  const std::int64_t rows = static_cast<std::int64_t>(y.size()) / h;
  const bool nvfp4 = options.format == QuantFormat::nvfp4;
  const double decode = nvfp4 ? number(tensors, "decode_scale") : 1;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::int64_t m = static_cast<std::int64_t>(i) / h / group_rows(options.format, rows);
    const std::int64_t k = static_cast<std::int64_t>(i) % h / group;
    const bool whole = options.format == QuantFormat::fp8_tensor;
    const std::int64_t at = whole ? 0 : offset_of(options.layout, m, k, rows, groups_n);
    // Exact in f32, or infinite.
    const auto product = static_cast<float>(y[i] * scales[static_cast<std::size_t>(at)]);
    y[i] = static_cast<double>(product) * decode;
  }
  tensors.set(make_array("y", f64, q.shape, y));
}

}  // namespace tilewright
