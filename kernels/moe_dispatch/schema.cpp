// SPDX-License-Identifier: Apache-2.0
// The operator moe_dispatch as the command line and bindings see it.
#include "kernels/moe_dispatch/limits.h"
#include "kernels/moe_dispatch/reference.h"
#include "kernels/rows/row_schema.h"

#include <algorithm>
#include <charconv>

namespace tilewright {
namespace {

constexpr std::array kRows{bf16, f16, f32, e4m3, e5m2, u8, s8, u16, s16, u32, s32, b8};
constexpr std::array kScales{f32, ue8m0, bf16, f16, e4m3, u8, s32, u32};
constexpr std::array kS32{s32};

constexpr TensorSpec kIntegers{.role = Role::output, .types = kS32};
constexpr TensorSpec integers(std::string_view name, std::string_view shape, std::string_view doc,
                              Presence presence = Presence::required) {
  TensorSpec spec = kIntegers;
  spec.name = name;
  spec.presence = presence;
  spec.shape = shape;
  spec.doc = doc;
  return spec;
}

constexpr std::array<TensorSpec, 11> kTensors{{
    {.name = "x", .role = Role::input, .shape = "T,H", .types = kRows, .doc = "tokens"},
    {.name = "ids",
     .role = Role::input,
     .shape = "T,K",
     .types = kS32,
     .doc = "experts of each token; -1 and those of other ranks are skipped"},
    {.name = "scales",
     .role = Role::input,
     .presence = Presence::optional,
     .shape = "T,G",
     .types = kScales,
     .doc = "of quantised tokens; of any strides"},
    {.name = "x_perm",
     .role = Role::output,
     .shape = "M,H",
     .types = kRows,
     .doc = "rows of experts, one expert after the other; M is at least T K + E (block - 1)"},
    {.name = "scales_perm",
     .role = Role::output,
     .shape = "M,G",
     .types = kScales,
     .doc = "there is one if there are scales; 0 for padding"},
    integers("counts", "EL", "tokens of each expert of this rank"),
    integers("offsets", "EO", "the first row of each expert, and all rows"),
    integers("slot", "TK", "the row of each choice, or -1"),
    integers("sorted_token_ids", "M", "the choice of each row; T K for padding",
             Presence::optional),
    integers("block_expert", "MB", "the expert of each block of rows; -1 beyond all",
             Presence::optional),
    integers("total_rows", "1", "rows with padding"),
}};

constexpr std::array<std::string_view, 1> kAll{"all"};
constexpr std::array<std::string_view, 2> kOrders{"stable", "unordered"};
constexpr std::array<std::string_view, 6> kVariants{
    "auto", "replicated", "decode", "decode_dependent", "prefill", "prefill_dependent"};
constexpr std::array<OptionSpec, 7> kOptions{{
    {.name = "experts",
     .type = OptionType::integer,
     .least = 1,
     .most = static_cast<double>(kMaxDispatchExpertsOfAll),
     .doc = "of all ranks"},
    {.name = "block",
     .type = OptionType::integer,
     .default_text = "1",
     .least = 1,
     .most = 1024,
     .doc = "the rows of an expert are padded to a multiple of it"},
    {.name = "first_expert",
     .type = OptionType::integer,
     .default_text = "0",
     .least = 0,
     .doc = "of this rank"},
    {.name = "local_experts",
     .type = OptionType::integer,
     .default_text = "all",
     .words = kAll,
     .least = 1,
     .doc = "of this rank; all: from first_expert on"},
    {.name = "order",
     .type = OptionType::choice,
     .default_text = "stable",
     .words = kOrders,
     .doc = "rows of an expert by token, or in any order"},
    {.name = "zero_pad",
     .type = OptionType::boolean,
     .default_text = "false",
     .doc = "padding rows become 0; else they keep what was there"},
    {.name = "variant",
     .type = OptionType::choice,
     .default_text = "auto",
     .words = kVariants,
     .doc = "how the work is laid out in launches"},
}};

// DeepSeek-V3's width with 128 experts, Qwen3-30B-A3B, Qwen3-235B-A22B, DeepSeek-V3 (fp8 with
// scales of 128 elements) and gpt-oss-120b.
constexpr std::array<std::string_view, 11> kBenchProblems{
    "T=1,K=8,H=7168,x=bf16,experts=128",
    "T=32,K=8,H=7168,x=bf16,experts=128",
    "T=128,K=8,H=7168,x=bf16,experts=128",
    "T=512,K=8,H=7168,x=bf16,experts=128",
    "T=4096,K=8,H=7168,x=bf16,experts=128",
    "T=64,K=8,H=2048,x=bf16,experts=128",
    "T=8192,K=8,H=2048,x=bf16,experts=128",
    "T=8192,K=8,H=4096,x=bf16,experts=128",
    "T=128,K=8,H=7168,G=56,x=e4m3,scales=f32,experts=256",
    "T=4096,K=8,H=7168,G=56,x=e4m3,scales=f32,experts=256",
    "T=4096,K=4,H=2880,x=bf16,experts=128"};

template <std::size_t N>
std::ptrdiff_t word_index(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) - words.begin();
}

MoeDispatchOptions options_of(const Arguments& arguments) {
  return {
      .experts = arguments.integer("experts"),
      .block = arguments.integer("block"),
      .first_expert = arguments.integer("first_expert"),
      .local_experts = arguments.integer_or_word("local_experts").value_or(-1),
      .order = static_cast<DispatchOrder>(word_index(kOrders, arguments.text("order"))),
      .zero_pad = arguments.boolean("zero_pad"),
      .variant = static_cast<DispatchVariant>(word_index(kVariants, arguments.text("variant")))};
}

MoeDispatchPlan plan_of(const Arguments& a, const DeviceProperties& device) {
  MoeDispatchOptions options = options_of(a);
  MoeDispatchTensors tensors{.x = a.tensor("x"),
                             .ids = a.tensor("ids"),
                             .scales = optional_view(a, "scales"),
                             .x_perm = a.tensor("x_perm"),
                             .scales_perm = optional_view(a, "scales_perm"),
                             .counts = a.tensor("counts"),
                             .offsets = a.tensor("offsets"),
                             .slot = a.tensor("slot"),
                             .sorted_token_ids = optional_view(a, "sorted_token_ids"),
                             .block_expert = optional_view(a, "block_expert"),
                             .total_rows = a.tensor("total_rows")};
  return plan_moe_dispatch(device, tensors, options,
                           a.workspace(moe_dispatch_workspace_bytes(options)));
}

std::vector<OutputSpec> outputs(const Arguments& arguments) {
  MoeDispatchOptions options = options_of(arguments);
  std::int64_t experts = local_experts(options);
  std::int64_t choices = arguments.size("T") * arguments.size("K");
  std::int64_t rows = moe_dispatch_rows(choices, options);
  std::vector<OutputSpec> specs{{"x_perm", arguments.tensor("x").type, {rows, arguments.size("H")}},
                                {"counts", s32, {experts}},
                                {"offsets", s32, {experts + 1}},
                                {"slot", s32, {choices}},
                                {"sorted_token_ids", s32, {rows}},
                                {"block_expert", s32, {rows / options.block}},
                                {"total_rows", s32, {1}}};
  if (const View* scales = arguments.find("scales"))
    specs.push_back({"scales_perm", scales->type, {rows, scales->shape[1]}});
  return specs;
}

/// Each token is read once, and written as often as it has experts: of this rank, if they are
/// evenly chosen.
std::int64_t bytes(const Arguments& arguments) {
  MoeDispatchOptions options = options_of(arguments);
  std::int64_t tokens = arguments.size("T"), choices = size(arguments.tensor("ids"));
  std::int64_t rows_written = choices * local_experts(options) / options.experts;
  std::int64_t total = 2 * size_bytes(arguments.tensor("ids"));  // ids and slots
  for (const View* view : {arguments.find("x"), arguments.find("scales")}) {
    if (view == nullptr) continue;
    std::int64_t row_bytes = view->shape[1] * bits(view->type) / 8;
    total += (tokens + rows_written) * row_bytes;
  }
  return total;
}

/// Distinct experts for each token, spread by a multiplicative hash (Knuth, volume 3, 6.4).
void fill_ids(const Problem& problem, std::vector<Array>& inputs) {
  std::uint64_t experts = 1;
  for (const auto& [name, value] : problem.options) {
    if (name == "experts") std::from_chars(value.data(), value.data() + value.size(), experts);
  }
  experts = std::max<std::uint64_t>(experts, 1);
  auto k = static_cast<std::uint64_t>(problem.size("K"));
  for (Array& array : inputs) {
    if (array.name != "ids") continue;
    std::vector<double> ids(static_cast<std::size_t>(element_count(array.shape)));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      auto first = ids.begin() + static_cast<std::ptrdiff_t>(i / k * k);
      auto here = ids.begin() + static_cast<std::ptrdiff_t>(i);
      std::uint64_t id = ((i + 1) * 2654435761U >> 7 & 0xffffff) % experts;
      auto taken = [&] { return std::find(first, here, static_cast<double>(id)) != here; };
      for (std::uint64_t tries = 0; tries < experts && taken(); ++tries)
        id = (id + 1) % experts;
      ids[i] = static_cast<double>(id);
    }
    array = make_array("ids", s32, array.shape, ids);
  }
}

constexpr Operator kMoeDispatch{
    .schema = {.name = "moe_dispatch",
               .version = 1,
               .formula = "x_perm[slot[t k]] = x[t] for every expert ids[t,k] of this rank; slots "
                          "ascend by expert, then by t k",
               .doc = "Copies tokens to their experts' rows, padded to blocks.",
               .tensors = kTensors,
               .options = kOptions},
    .outputs = outputs,
    .launch =
        [](const Device& device, const Stream& stream, const Arguments& a) {
          launch_moe_dispatch(stream, plan_of(a, device.properties()));
        },
    .workspace_bytes =
        [](const Arguments& a) { return moe_dispatch_workspace_bytes(options_of(a)); },
    .reference =
        [](const Arguments& a, HostTensors& tensors) {
          moe_dispatch_reference(options_of(a), a.tensor("x_perm").shape[0], tensors);
        },
    .tolerance = [](const Arguments&, std::string_view) { return Tolerance{}; },  // bits are copied
    .nan_rule = skip_nan,
    .bytes = bytes,
    .trace =
        [](const Arguments& a, ptx::Target target) {
          std::vector<Traced> traced;
          for (const DispatchLaunch& launch : plan_of(a, traced_device()).launches)
            traced.push_back(launch.trace(target));
          return traced;
        },
    .fill = fill_ids,
    .bench_problems = kBenchProblems,
};

}  // namespace

const Operator& moe_dispatch_operator() { return kMoeDispatch; }

}  // namespace tilewright
