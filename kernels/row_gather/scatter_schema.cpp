// SPDX-License-Identifier: Apache-2.0
// The operator scatter_rows as the command line and bindings see it.
#include "kernels/row_gather/reference.h"
#include "kernels/row_gather/row_checks.h"
#include "kernels/row_gather/row_scatter.h"
#include "kernels/rows/row_schema.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace tilewright {
namespace {

constexpr std::array<TensorSpec, 3> kTensors{{
    {.name = "src", .role = Role::input, .shape = "T,H", .types = kCopied, .doc = "rows"},
    {.name = "ids",
     .role = Role::input,
     .shape = "T",
     .types = kIndices,
     .doc = "the row of dst for each, none twice; -1 and others outside dst are skipped"},
    {.name = "dst",
     .role = Role::inout,
     .shape = "V,H",
     .types = kCopied,
     .doc = "src's type; rows that no index names stay"},
}};

// Hidden sizes of Qwen3-8B and DeepSeek-V3.
constexpr std::array<std::string_view, 3> kBenchProblems{"T=32768,V=65536,H=4096,src=bf16",
                                                         "T=8192,V=65536,H=7168,src=bf16",
                                                         "T=64,V=65536,H=4096,src=bf16"};

RowScatterTensors tensors_of(const Arguments& a) {
  return {a.tensor("src"), a.tensor("ids"), a.tensor("dst")};
}

/// Of two rows for one place either may be there afterwards, or parts of both.
void check_contents(const Arguments& arguments, std::span<const Array> inputs) {
  check_distinct_indices(arguments, *find_input(inputs, "ids"), arguments.size("V"),
                         "each row of src must have a row of its own");
}

/// As many rows as dst has, far apart in it, each once: multiples of a number without a factor in
/// common with theirs. dst has src's type unless the problem names one.
void fill(const Problem& problem, std::vector<Array>& inputs) {
  const std::int64_t rows = problem.size("V");
  std::int64_t step = std::max<std::int64_t>(1, rows * 5 / 8);
  while (std::gcd(step, rows) > 1)
    ++step;
  const Type type = find_input(inputs, "src")->type;
  const bool is_typed = std::any_of(problem.types.begin(), problem.types.end(),
                                    [](const auto& each) { return each.first == "dst"; });
  for (Array& array : inputs) {
    if (array.name == "dst" && array.type != type && !is_typed)
      array = make_array("dst", type, array.shape);
    if (array.name != "ids") continue;
    std::vector<double> ids(static_cast<std::size_t>(element_count(array.shape)), -1);
    const auto count = std::min(rows, static_cast<std::int64_t>(ids.size()));
    for (std::int64_t i = 0; i < count; ++i)
      ids[static_cast<std::size_t>(i)] = static_cast<double>(i * step % rows);
    array = make_array(array.name, array.type, array.shape, ids);
  }
}

constexpr Operator kScatterRows{
    .schema = {.name = "scatter_rows",
               .version = 1,
               .formula = "dst[ids[t]] = src[t], nothing where ids[t] is outside dst",
               .doc = "Copies rows to places by index.",
               .tensors = kTensors,
               .options = {},
               .limits = "Two rows for one place are refused where ids are known, else either is "
                         "there; src and dst are apart."},
    .outputs = [](const Arguments&) -> std::vector<OutputSpec> { return {}; },
    .launch =
        [](const Device&, const Stream& stream, const Arguments& a) {
          scatter_rows(stream, a.tensor("src"), a.tensor("ids"), a.tensor("dst"));
        },
    .reference = [](const Arguments&, HostTensors& tensors) { scatter_rows_reference(tensors); },
    .tolerance = [](const Arguments&, std::string_view) { return Tolerance{}; },  // the same bits
    .check_contents = check_contents,
    .bytes =
        [](const Arguments& a) {
          const View& src = a.tensor("src");
          const std::int64_t rows_written = std::min(src.shape[0], a.tensor("dst").shape[0]);
          return size_bytes(src) + size_bytes(a.tensor("ids")) +
                 rows_written * src.shape[1] * bits(src.type) / 8;
        },
    .trace =
        [](const Arguments& a, ptx::Target target) {
          std::vector<Traced> traced;
          traced.push_back(plan_row_scatter(DeviceProperties{}, tensors_of(a)).trace(target));
          return traced;
        },
    .fill = fill,
    .bench_problems = kBenchProblems,
};

}  // namespace

const Operator& scatter_rows_operator() { return kScatterRows; }

}  // namespace tilewright
