// SPDX-License-Identifier: Apache-2.0
// Placement of arrays in device memory, and the comparison with the reference.
#include "operator_fixture.h"

#include "tilewright/tune.h"
#include "tilewright/written.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>

namespace tilewright::test {
namespace {

/// Bytes that no kernel writes by chance: what lies between rows must stay so.
constexpr std::byte kPoison{0xa5};

/// Bytes of some elements; two of four bits share one.
std::int64_t bytes_of(std::int64_t elems, Type type) {
  return (elems * storage_bits(type) + 7) / 8;
}

std::int64_t rows_of(const std::vector<std::int64_t>& shape) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i)
    rows *= shape[i];
  return rows;
}

/// Rows so far apart that what lies between them is neither filled nor looked at.
bool is_far(std::int64_t step) { return step > std::int64_t{1} << 24; }

Role role_of(const Schema& schema, std::string_view name) {
  auto named = [name](const TensorSpec& spec) { return spec.name == name; };
  auto spec = std::find_if(schema.tensors.begin(), schema.tensors.end(), named);
  return spec == schema.tensors.end() ? Role::input : spec->role;
}

}  // namespace

OperatorTest::Placed OperatorTest::reserve(Type type, const std::vector<std::int64_t>& shape,
                                           Placement placement) {
  std::int64_t columns = shape.empty() ? 1 : shape.back();
  std::int64_t step = columns + (shape.size() > 1 ? placement.row_padding : 0);
  std::int64_t elems = rows_of(shape) * step + placement.offset_elems;
  Buffer memory(device, bytes_of(elems + 64, type));
  if (!is_far(step)) memory.fill(kPoison);
  std::vector<std::int64_t> stride(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    stride[i - 1] = i + 1 == shape.size() ? step : stride[i] * shape[i];
  }
  auto address =
      memory.address() + static_cast<std::uint64_t>(bytes_of(placement.offset_elems, type));
  View view = make_view(address, type, shape, stride);
  return {std::move(memory), view};
}

OperatorTest::Placed OperatorTest::place(const Array& array, Placement placement) {
  Placed placed = reserve(array.type, array.shape, placement);
  std::int64_t columns = array.shape.empty() ? 1 : array.shape.back();
  std::int64_t row_bytes = bytes_of(columns, array.type);
  std::int64_t step = placed.view.rank > 1
                          ? placed.view.stride[static_cast<std::size_t>(placed.view.rank - 2)]
                          : columns;
  for (std::int64_t row = 0; row < rows_of(array.shape); ++row) {
    auto source = std::span(array.bytes)
                      .subspan(static_cast<std::size_t>(row * row_bytes),
                               static_cast<std::size_t>(row_bytes));
    std::int64_t at =
        bytes_of(placement.offset_elems, array.type) + bytes_of(row * step, array.type);
    placed.memory.upload(source, at);
  }
  return placed;
}

Array OperatorTest::fetch(const Placed& placed, const std::string& name) {
  std::vector<std::int64_t> shape(placed.view.shape.begin(),
                                  placed.view.shape.begin() + placed.view.rank);
  Array array = make_array(name, placed.view.type, shape);
  std::int64_t columns = shape.empty() ? 1 : shape.back();
  auto row_bytes = static_cast<std::size_t>(bytes_of(columns, array.type));
  std::int64_t step = placed.view.rank > 1
                          ? placed.view.stride[static_cast<std::size_t>(placed.view.rank - 2)]
                          : columns;
  auto begin = static_cast<std::size_t>(placed.view.address - placed.memory.address());
  if (is_far(step)) {
    for (std::int64_t row = 0; row < rows_of(shape); ++row) {
      placed.memory.download(
          std::span(array.bytes).subspan(static_cast<std::size_t>(row) * row_bytes, row_bytes),
          static_cast<std::int64_t>(begin) + bytes_of(row * step, array.type));
    }
    return array;
  }
  std::vector<std::byte> all(static_cast<std::size_t>(placed.memory.size_bytes()));
  placed.memory.download(all);
  std::vector<bool> written(all.size());
  for (std::int64_t row = 0; row < rows_of(shape); ++row) {
    std::size_t at = begin + static_cast<std::size_t>(bytes_of(row * step, array.type));
    auto source = std::span(all).subspan(at, row_bytes);
    std::copy(source.begin(), source.end(),
              array.bytes.begin() +
                  static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * row_bytes));
    for (std::size_t i = 0; i < row_bytes; ++i)
      written[at + i] = true;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!written[i] && all[i] != kPoison) {
      ADD_FAILURE() << name << ": byte " << i << " outside the tensor was written";
      break;
    }
  }
  return array;
}

std::vector<Array> OperatorTest::run(const Operator& op, const std::vector<Array>& inputs,
                                     const Options& options, Placement placement) {
  Arguments arguments(op.schema);
  for (const auto& [name, value] : options)
    arguments.set_option(name, value);
  std::vector<Placed> placed;
  HostTensors reference;
  for (const Array& input : inputs) {
    placed.push_back(place(input, placement));
    arguments.set(input.name, placed.back().view);
    reference.set(input);
  }
  std::vector<OutputSpec> specs = op.outputs(arguments);
  if (op.check_contents != nullptr) op.check_contents(arguments, inputs);
  std::size_t first_output = placed.size();
  for (const OutputSpec& spec : specs) {
    placed.push_back(reserve(spec.type, spec.shape, placement));
    arguments.set(spec.name, placed.back().view);
  }
  std::optional<Buffer> workspace;
  if (op.workspace_bytes != nullptr) {
    workspace.emplace(device, op.workspace_bytes(arguments));
    workspace->fill(std::byte{0});
    arguments.set_workspace({workspace->address(), workspace->size_bytes()});
  }
  op.launch(device, stream, arguments);
  stream.synchronize();
  std::vector<Array> written;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    std::string name(i < first_output ? inputs[i].name : specs[i - first_output].name);
    bool is_input = i < first_output && role_of(op.schema, name) != Role::inout;
    if (!is_input) written.push_back(fetch(placed[i], name));
  }
  reference_of_written(op, arguments, written, reference);
  for (const Array& out : written) {
    const Comparison result = compare_with_reference(op, arguments, out, reference);
    EXPECT_EQ(result.wrong, 0) << out.name << " of " << to_string(placed.front().view)
                               << ": element " << result.first_wrong << " is " << result.out
                               << ", reference " << result.reference << ", bound " << result.bound;
    if (result.wrong == 0) {
      EXPECT_LE(result.worst_ratio, allowed_part)
          << out.name << " of " << to_string(placed.front().view);
    }
  }
  written.erase(written.begin(), written.end() - static_cast<std::ptrdiff_t>(specs.size()));
  return written;
}

void OperatorTest::run_candidates(const Operator& op, const std::vector<Array>& inputs,
                                  const Options& options, Placement placement) {
  std::vector<tune::Lookup> lookups;
  {
    const tune::Watch watch;
    run(op, inputs, options, placement);
    lookups = watch.lookups();
  }
  EXPECT_FALSE(lookups.empty()) << op.schema.name << " looks nothing up";
  for (const tune::Lookup& lookup : lookups) {
    for (const tune::Config& config :
         tune::candidates(*lookup.space, device.properties(), lookup.key)) {
      SCOPED_TRACE(std::string(lookup.space->name) + " " +
                   tune::config_text(*lookup.space, config));
      const tune::Pin pin(*lookup.space, config);
      run(op, inputs, options, placement);
    }
  }
}

void OperatorTest::run_schedules(const Operator& op, const std::vector<Array>& inputs,
                                 const Options& options) {
  if (!emulated()) {
    run(op, inputs, options);
    return;
  }
  const char* text = std::getenv("TILEWRIGHT_EMU_SEEDS");
  const std::uint64_t seeds = text == nullptr ? 3 : std::strtoull(text, nullptr, 10);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    for (emu::Residency residency : {emu::Residency::all, emu::Residency::estimate}) {
      SCOPED_TRACE("seed " + std::to_string(seed) +
                   (residency == emu::Residency::all ? ", all" : ", estimate"));
      emu::Options how;
      how.seed = seed;
      how.residency = residency;
      how.divergence = static_cast<emu::Divergence>(seed % 3);
      device.set_options(how);
      run(op, inputs, options);
    }
  }
  device.set_options({});
}

std::string OperatorTest::refusal(const Operator& op, const std::vector<Array>& inputs,
                                  const Options& options) {
  try {
    run(op, inputs, options);
  } catch (const Error& error) {
    return error.message();
  }
  return "accepted";
}

Array& OperatorTest::named(std::vector<Array>& inputs, std::string_view name) {
  return *std::find_if(inputs.begin(), inputs.end(),
                       [&](const Array& each) { return each.name == name; });
}

void OperatorTest::remove(std::vector<Array>& inputs, std::string_view name) {
  std::erase_if(inputs, [&](const Array& each) { return each.name == name; });
}

Array OperatorTest::random(std::string name, Type type, std::vector<std::int64_t> shape,
                           double scale, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
  for (double& value : values) {  // the sum of four uniform numbers is near enough to normal
    double sum = 0;
    for (int i = 0; i < 4; ++i)
      sum += static_cast<double>(generator() >> 11) * 0x1p-53 - 0.5;
    value = sum * std::sqrt(3.0) * scale;
    if (!is_float(type)) value = static_cast<double>(generator() % 100);  // fits every integer
  }
  return make_array(std::move(name), type, std::move(shape), values);
}

}  // namespace tilewright::test
