// SPDX-License-Identifier: Apache-2.0
// gather_rows and embedding as the command line and bindings see them.
#include "kernels/row_gather/reference.h"
#include "kernels/row_gather/row_checks.h"
#include "kernels/row_gather/row_gather.h"
#include "kernels/rows/row_schema.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tilewright {
namespace {

constexpr std::array kTables{bf16, f16, f32, e4m3};

constexpr std::array<TensorSpec, 3> kGatherTensors{{
    {.name = "src", .role = Role::input, .shape = "V,H", .types = kCopied, .doc = "rows"},
    {.name = "ids",
     .role = Role::input,
     .shape = "T",
     .types = kIndices,
     .doc = "rows to take; -1 and others outside src are missing"},
    {.name = "dst",
     .role = Role::inout,
     .presence = Presence::optional,
     .shape = "T,H",
     .types = kCopied,
     .doc = "src's type; kept with missing=skip alone, which needs it"},
}};
constexpr std::array<std::string_view, 2> kMissing{"zeros", "skip"};
constexpr std::array<OptionSpec, 1> kGatherOptions{{
    {.name = "missing",
     .type = OptionType::choice,
     .default_text = "zeros",
     .words = kMissing,
     .doc = "what an index outside src gives: zeros, or the row that is in dst"},
}};
constexpr std::array kCounts{u32};
constexpr std::array<TensorSpec, 11> kEmbeddingTensors{{
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
    {.name = "type_table",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "N,H",
     .types = kReals,
     .doc = "added by token_types, in f32, to tokens that have a row in table"},
    {.name = "token_types",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "T",
     .types = kIndices,
     .doc = "with type_table; one outside it adds 0"},
    {.name = "position_table",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "P,H",
     .types = kReals,
     .doc = "added by positions, behind type_table's rows"},
    {.name = "positions",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "T",
     .types = kIndices,
     .doc = "with position_table; one outside it adds 0"},
    {.name = "w",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "H",
     .types = kReals,
     .doc = "with norm; absent: 1"},
    {.name = "residual_out",
     .role = Role::output,
     .presence = Presence::optional,
     .shape = "T,H",
     .types = kReals,
     .doc = "with norm: the rows before it, in residual_type; the norm reads them as stored"},
}};

constexpr std::array<std::string_view, 4> kEmbeddingTypes{"as_table", "bf16", "f16", "f32"};
constexpr std::array<std::string_view, 4> kResidualTypes{"as_out", "bf16", "f16", "f32"};
constexpr std::array<std::string_view, 1> kAll{"all"}, kNone{"none"};
constexpr std::array<OptionSpec, 11> kEmbeddingOptions{{
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
    {.name = "added_count",
     .type = OptionType::integer,
     .default_text = "all",
     .words = kAll,
     .least = 0,
     .doc = "how many there are; all: to the end of the table, padding and all"},
    {.name = "scale",
     .type = OptionType::real,
     .default_text = "1",
     .doc = "a factor for every element"},
    {.name = "out_type",
     .type = OptionType::choice,
     .default_text = "as_table",
     .words = kEmbeddingTypes,
     .doc = "type of out"},
    {.name = "norm",
     .type = OptionType::boolean,
     .default_text = "false",
     .doc = "whether out has the rows' rms_norm"},
    {.name = "eps",
     .type = OptionType::real,
     .default_text = "1e-6",
     .least = 0,
     .doc = "norm: added to the mean of the squares; with 0 a row of zeros gives NaN, but a token "
            "without a row zeros"},
    kWeightBiasOption,
    {.name = "residual_type",
     .type = OptionType::choice,
     .default_text = "as_out",
     .words = kResidualTypes,
     .doc = "type of residual_out"},
}};

// Hidden sizes of Qwen3-8B and DeepSeek-V3.
constexpr std::array<std::string_view, 3> kGatherProblems{"T=32768,V=65536,H=4096,src=bf16",
                                                          "T=8192,V=65536,H=7168,src=bf16",
                                                          "T=64,V=65536,H=4096,src=bf16"};
constexpr std::array<std::string_view, 4> kEmbeddingProblems{
    "T=8192,V=151936,H=4096,table=bf16", "T=8192,V=129280,H=7168,table=bf16",
    "T=64,V=151936,H=4096,table=bf16", "T=8192,V=151936,H=4096,table=bf16,w=bf16,norm=true"};

Type out_type(const Arguments& arguments) {
  std::string_view text = arguments.text("out_type");
  return text == "as_table" ? arguments.tensor("table").type : *type_from_name(text);
}

MissingRow missing_row(const Arguments& arguments) {
  return arguments.text("missing") == "skip" ? MissingRow::skip : MissingRow::zeros;
}

std::vector<OutputSpec> gather_outputs(const Arguments& arguments) {
  if (arguments.find("dst") != nullptr) return {};
  if (missing_row(arguments) == MissingRow::skip)
    arguments.fail("missing=skip, but dst is not given; it has the rows that stay");
  const View& src = arguments.tensor("src");
  return {{"dst", src.type, {arguments.tensor("ids").shape[0], src.shape[1]}}};
}

RowGatherTensors gather_tensors(const Arguments& arguments) {
  return {arguments.tensor("ids"), arguments.tensor("src"), std::nullopt, arguments.tensor("dst")};
}

/// Both tensors or none.
std::optional<AddedRows<View>> added_rows(const Arguments& arguments, const char* table,
                                          const char* indices) {
  const View* rows = arguments.find(table);
  const View* which = arguments.find(indices);
  if ((rows == nullptr) != (which == nullptr)) {
    arguments.fail(std::string(table) + " and " + indices + " go together; give both, or none");
  }
  if (rows == nullptr) return std::nullopt;
  return AddedRows<View>{*rows, *which};
}

RowGatherTensors embedding_tensors(const Arguments& arguments) {
  RowGatherTensors tensors{arguments.tensor("ids"), arguments.tensor("table"), std::nullopt,
                           arguments.tensor("out")};
  if (const View* scale = arguments.find("row_scale")) tensors.row_scale = *scale;
  if (const View* bad = arguments.find("bad_ids")) tensors.bad_ids = *bad;
  tensors.types = added_rows(arguments, "type_table", "token_types");
  tensors.positions = added_rows(arguments, "position_table", "positions");
  tensors.w = optional_view(arguments, "w");
  tensors.residual_out = optional_view(arguments, "residual_out");
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
  const std::optional<std::int64_t> count = arguments.integer_or_word("added_count");
  if (count && !start)
    arguments.fail("added_count=" + std::to_string(*count) + " without added_start and added_row");
  if (start) options.added = {*start, *row, count.value_or(-1)};
  if (arguments.boolean("norm")) {
    options.norm = {.eps = static_cast<float>(arguments.real("eps")),
                    .weight_bias = static_cast<float>(arguments.real("weight_bias"))};
    return options;
  }
  for (const char* option : {"eps", "weight_bias", "residual_type"})
    refuse_idle(arguments, option, "without norm=true");
  return options;
}

Type residual_type(const Arguments& arguments) {
  std::string_view text = arguments.text("residual_type");
  return text == "as_out" ? out_type(arguments) : *type_from_name(text);
}

std::vector<OutputSpec> embedding_outputs(const Arguments& arguments) {
  const std::vector<std::int64_t> shape{arguments.tensor("ids").shape[0],
                                        arguments.tensor("table").shape[1]};
  std::vector<OutputSpec> specs{{"out", out_type(arguments), shape}};
  if (arguments.boolean("norm")) specs.push_back({"residual_out", residual_type(arguments), shape});
  return specs;
}

/// Each distinct row is read once at best.
std::int64_t bytes_read(const View& table, const View& ids) {
  std::int64_t rows_read = std::min(ids.shape[0], table.shape[0]);
  return rows_read * table.shape[1] * bits(table.type) / 8 + size_bytes(ids);
}

std::int64_t embedding_bytes(const Arguments& arguments) {
  const RowGatherTensors tensors = embedding_tensors(arguments);
  std::int64_t total = bytes_read(tensors.table, tensors.ids) + size_bytes(tensors.out);
  for (const std::optional<AddedRows<View>>* added : {&tensors.types, &tensors.positions}) {
    if (*added) total += bytes_read((*added)->table, (*added)->indices);
  }
  for (const std::optional<View>* view : {&tensors.w, &tensors.residual_out})
    total += *view ? size_bytes(**view) : 0;
  return total;
}

bool adds_rows(const Arguments& arguments) {
  return arguments.find("type_table") != nullptr || arguments.find("position_table") != nullptr;
}

std::vector<Traced> traced_of(const RowGatherPlan& plan, ptx::Target target) {
  std::vector<Traced> traced;
  traced.push_back(plan.trace(target));
  return traced;
}

/// 0 to count - 1, again and again.
void count_up(Array& array, std::int64_t count) {
  std::vector<double> indices;
  for (std::int64_t i = 0; i < element_count(array.shape); ++i)
    indices.push_back(static_cast<double>(i % std::max<std::int64_t>(1, count)));
  array = make_array(array.name, array.type, array.shape, indices);
}

/// Rows spread over the table by a multiplicative hash (Knuth, volume 3, 6.4); positions and types
/// in order.
void spread_ids(const Problem& problem, std::vector<Array>& inputs) {
  std::int64_t rows = std::max<std::int64_t>(1, problem.size("V"));
  for (Array& array : inputs) {
    if (array.name == "bad_ids") array = make_array("bad_ids", u32, {1}, std::vector<double>{0});
    if (array.name == "token_types") count_up(array, problem.size("N"));
    if (array.name == "positions") count_up(array, problem.size("P"));
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
               .formula = "dst[t] = src[ids[t]]; where ids[t] is outside src 0, or dst[t] stays",
               .doc = "Copies rows by index.",
               .tensors = kGatherTensors,
               .options = kGatherOptions,
               .limits = "src and dst are apart: pages of one cache are copied by way of another."},
    .outputs = gather_outputs,
    .launch =
        [](const Device&, const Stream& stream, const Arguments& a) {
          gather_rows(stream, a.tensor("src"), a.tensor("ids"), a.tensor("dst"), missing_row(a));
        },
    .reference = [](const Arguments& a,
                    HostTensors& tensors) { gather_rows_reference(missing_row(a), tensors); },
    .tolerance = [](const Arguments&, std::string_view) { return Tolerance{}; },  // the same bits
    .bytes =
        [](const Arguments& a) {
          return bytes_read(a.tensor("src"), a.tensor("ids")) + size_bytes(a.tensor("dst"));
        },
    .trace =
        [](const Arguments& a, ptx::Target target) {
          return traced_of(plan_row_gather("gather_rows", DeviceProperties{}, gather_tensors(a),
                                           {.missing = missing_row(a)}),
                           target);
        },
    .fill = spread_ids,
    .bench_problems = kGatherProblems,
};

/// Exact, but for the rounding of the output and of two products in f32. Sums, and all that the
/// norm reads, are rounded as the reference rounds them; the norm as rms_norm (contract, I 1.1).
Tolerance embedding_tolerance(const Arguments& arguments, std::string_view output) {
  if (output == "bad_ids" || output == "residual_out") return {};
  Type type = out_type(arguments);
  if (arguments.boolean("norm"))
    return rounded_once(type, std::log2(static_cast<double>(arguments.size("H"))) + 8);
  if (adds_rows(arguments)) return {};
  bool scales = arguments.find("row_scale") != nullptr || arguments.real("scale") != 1;
  bool widens = type == f32 || type == arguments.tensor("table").type;
  if (!scales && widens) return {};
  return {.relative = rows::half_ulp(type) + 4 * 0x1p-24, .absolute = rows::half_tiniest(type)};
}

constexpr Operator kEmbedding{
    .schema = {.name = "embedding",
               .version = 1,
               .formula = "out[t] = table[ids[t] - vocab_start] * row_scale * scale + "
                          "type_table[token_types[t]] + position_table[positions[t]], or 0; "
                          "table[ids[t] - added_start + added_row] for added tokens; norm: that "
                          "is residual_out, and out = residual_out / sqrt(mean(residual_out^2) + "
                          "eps) * (w + weight_bias), 0 for tokens without a row",
               .doc = "Looks tokens up in a table, or in one rank's part of it; with norm also "
                      "their root-mean-square normalisation.",
               .tensors = kEmbeddingTensors,
               .options = kEmbeddingOptions,
               .limits = "With norm, H is 1 to 1048576 and out of 16 or 32 bits. out of e4m3 "
                         "saturates."},
    .outputs = embedding_outputs,
    .launch =
        [](const Device&, const Stream& stream, const Arguments& a) {
          embedding(stream, embedding_tensors(a), embedding_options(a));
        },
    .reference =
        [](const Arguments& a, HostTensors& tensors) {
          const bool keeps = a.find("residual_out") != nullptr;
          embedding_reference(embedding_options(a), out_type(a),
                              keeps ? std::optional(residual_type(a)) : std::nullopt, tensors);
        },
    .tolerance = embedding_tolerance,
    .bytes = embedding_bytes,
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
