// SPDX-License-Identifier: Apache-2.0
// gather_rows and embedding as the command line and bindings see them.
#include "kernels/row_gather/reference.h"
#include "kernels/row_gather/row_gather.h"

#include <algorithm>
#include <array>

namespace tilewright {
namespace {

constexpr std::array kAny{bf16, f16, f32, f64, b8,  u8,   s8,  u16,
                          s16,  u32, s32, u64, s64, e4m3, e5m2};
constexpr std::array kIndices{s32, s64};
constexpr std::array kTables{bf16, f16, f32, e4m3};
constexpr std::array kF32{f32};

constexpr std::array<TensorSpec, 3> kGatherTensors{{
    {.name = "src", .role = Role::input, .shape = "V,H", .types = kAny, .doc = "rows"},
    {.name = "ids",
     .role = Role::input,
     .shape = "T",
     .types = kIndices,
     .doc = "rows to take; an index outside src gives zeros"},
    {.name = "dst", .role = Role::output, .shape = "T,H", .types = kAny, .doc = "src's type"},
}};
constexpr std::array kCounts{u32};
constexpr std::array<TensorSpec, 5> kEmbeddingTensors{{
    {.name = "ids",
     .role = Role::input,
     .shape = "T",
     .types = kIndices,
     .doc = "tokens; one without a row in the table gives zeros"},
    {.name = "table", .role = Role::input, .shape = "V,H", .types = kTables, .doc = "embeddings"},
    {.name = "row_scale",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "V",
     .types = kF32,
     .doc = "a factor for each row of the table"},
    {.name = "out",
     .role = Role::output,
     .shape = "T,H",
     .types = kTables,
     .doc = "table's type unless out_type says otherwise"},
    {.name = "bad_ids",
     .role = Role::inout,
     .presence = Presence::optional,
     .shape = "1",
     .types = kCounts,
     .doc = "ids without a row in the table are added to it"},
}};

constexpr std::array<std::string_view, 4> kOutTypes{"as_table", "bf16", "f16", "f32"};
constexpr std::array<std::string_view, 1> kAll{"all"}, kNone{"none"};
constexpr std::array<OptionSpec, 6> kEmbeddingOptions{{
    {.name = "vocab_start",
     .type = OptionType::integer,
     .default_text = "0",
     .least = 0,
     .doc = "the token of the table's first row"},
    {.name = "vocab_count",
     .type = OptionType::integer,
     .default_text = "all",
     .words = kAll,
     .least = 0,
     .doc = "tokens from there on; all: to the end of the table, or to added_row"},
    {.name = "added_start",
     .type = OptionType::integer,
     .default_text = "none",
     .words = kNone,
     .least = 0,
     .doc = "the first of other tokens, which have the rows from added_row on"},
    {.name = "added_row",
     .type = OptionType::integer,
     .default_text = "none",
     .words = kNone,
     .least = 0,
     .doc = "behind the rows of vocab_count and their padding; with added_start"},
    {.name = "scale",
     .type = OptionType::real,
     .default_text = "1",
     .doc = "a factor for every element"},
    {.name = "out_type",
     .type = OptionType::choice,
     .default_text = "as_table",
     .words = kOutTypes,
     .doc = "type of out"},
}};

// Hidden sizes of Qwen3-8B and DeepSeek-V3.
constexpr std::array<std::string_view, 3> kGatherProblems{"T=32768,V=65536,H=4096,src=bf16",
                                                          "T=8192,V=65536,H=7168,src=bf16",
                                                          "T=64,V=65536,H=4096,src=bf16"};
constexpr std::array<std::string_view, 3> kEmbeddingProblems{"T=8192,V=151936,H=4096,table=bf16",
                                                             "T=8192,V=129280,H=7168,table=bf16",
                                                             "T=64,V=151936,H=4096,table=bf16"};

Type out_type(const Arguments& arguments) {
  std::string_view text = arguments.text("out_type");
  return text == "as_table" ? arguments.tensor("table").type : *type_from_name(text);
}

RowGatherTensors gather_tensors(const Arguments& arguments) {
  return {arguments.tensor("ids"), arguments.tensor("src"), std::nullopt, arguments.tensor("dst")};
}

RowGatherTensors embedding_tensors(const Arguments& arguments) {
  RowGatherTensors tensors{arguments.tensor("ids"), arguments.tensor("table"), std::nullopt,
                           arguments.tensor("out")};
  if (const View* scale = arguments.find("row_scale")) tensors.row_scale = *scale;
  if (const View* bad = arguments.find("bad_ids")) tensors.bad_ids = *bad;
  return tensors;
}

RowGatherOptions embedding_options(const Arguments& arguments) {
  RowGatherOptions options{.first_id = arguments.integer("vocab_start"),
                           .scale = static_cast<float>(arguments.real("scale")),
                           .count = arguments.integer_or_word("vocab_count").value_or(-1)};
  const std::optional<std::int64_t> start = arguments.integer_or_word("added_start");
  const std::optional<std::int64_t> row = arguments.integer_or_word("added_row");
  if (start.has_value() != row.has_value())
    arguments.fail("added_start and added_row go together; give both, or none");
  if (start) options.added = {*start, *row};
  return options;
}

/// Each distinct row is read once at best.
std::int64_t bytes_of(const View& table, const View& ids, const View& out) {
  std::int64_t rows_read = std::min(ids.shape[0], table.shape[0]);
  return rows_read * table.shape[1] * bits(table.type) / 8 + size_bytes(ids) + size_bytes(out);
}

std::vector<Traced> traced_of(const RowGatherPlan& plan, ptx::Target target) {
  std::vector<Traced> traced;
  traced.push_back(plan.trace(target));
  return traced;
}

/// Rows spread over the table by a multiplicative hash (Knuth, volume 3, 6.4).
void spread_ids(const Problem& problem, std::vector<Array>& inputs) {
  std::int64_t rows = std::max<std::int64_t>(1, problem.size("V"));
  for (Array& array : inputs) {
    if (array.name == "bad_ids") array = make_array("bad_ids", u32, {1}, std::vector<double>{0});
    if (array.name != "ids") continue;
    std::vector<double> ids(static_cast<std::size_t>(element_count(array.shape)));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::uint64_t hash = (i * 2654435761u) & 0xffffffffu;
      ids[i] = static_cast<double>(hash % static_cast<std::uint64_t>(rows));
    }
    array = make_array(array.name, array.type, array.shape, ids);
  }
}

constexpr Operator kGatherRows{
    .schema = {.name = "gather_rows",
               .version = 1,
               .formula = "dst[t] = src[ids[t]], 0 where ids[t] is outside src",
               .doc = "Copies rows by index.",
               .tensors = kGatherTensors,
               .options = {}},
    .outputs = [](const Arguments& a) -> std::vector<OutputSpec> {
      return {{"dst", a.tensor("src").type, {a.tensor("ids").shape[0], a.tensor("src").shape[1]}}};
    },
    .launch =
        [](const Device&, const Stream& stream, const Arguments& a) {
          gather_rows(stream, a.tensor("src"), a.tensor("ids"), a.tensor("dst"));
        },
    .reference = [](const Arguments&, HostTensors& tensors) { gather_rows_reference(tensors); },
    .tolerance = [](const Arguments&, std::string_view) { return Tolerance{}; },  // the same bits
    .bytes =
        [](const Arguments& a) {
          return bytes_of(a.tensor("src"), a.tensor("ids"), a.tensor("dst"));
        },
    .trace =
        [](const Arguments& a, ptx::Target target) {
          return traced_of(plan_row_gather("gather_rows", DeviceProperties{}, gather_tensors(a)),
                           target);
        },
    .fill = spread_ids,
    .bench_problems = kGatherProblems,
};

/// Exact, but for the rounding of the output and of two products in f32.
Tolerance embedding_tolerance(const Arguments& arguments, std::string_view output) {
  if (output == "bad_ids") return {};
  Type type = out_type(arguments);
  bool scales = arguments.find("row_scale") != nullptr || arguments.real("scale") != 1;
  bool widens = type == f32 || type == arguments.tensor("table").type;
  if (!scales && widens) return {};
  return {.relative = rows::half_ulp(type) + 4 * 0x1p-24, .absolute = rows::half_tiniest(type)};
}

constexpr Operator kEmbedding{
    .schema = {.name = "embedding",
               .version = 1,
               .formula = "out[t] = table[ids[t] - vocab_start] * row_scale * scale, or 0; "
                          "table[ids[t] - added_start + added_row] for added tokens",
               .doc = "Looks tokens up in a table, or in one rank's part of it.",
               .tensors = kEmbeddingTensors,
               .options = kEmbeddingOptions},
    .outputs = [](const Arguments& a) -> std::vector<OutputSpec> {
      return {{"out", out_type(a), {a.tensor("ids").shape[0], a.tensor("table").shape[1]}}};
    },
    .launch =
        [](const Device&, const Stream& stream, const Arguments& a) {
          embedding(stream, embedding_tensors(a), embedding_options(a));
        },
    .reference = [](const Arguments& a,
                    HostTensors& tensors) { embedding_reference(embedding_options(a), tensors); },
    .tolerance = embedding_tolerance,
    .bytes =
        [](const Arguments& a) {
          return bytes_of(a.tensor("table"), a.tensor("ids"), a.tensor("out"));
        },
    .trace =
        [](const Arguments& a, ptx::Target target) {
          return traced_of(plan_row_gather("embedding", DeviceProperties{}, embedding_tensors(a),
                                           embedding_options(a)),
                           target);
        },
    .fill = spread_ids,
    .bench_problems = kEmbeddingProblems,
};

}  // namespace

const Operator& gather_rows_operator() { return kGatherRows; }
const Operator& embedding_operator() { return kEmbedding; }

}  // namespace tilewright
