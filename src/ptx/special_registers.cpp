// SPDX-License-Identifier: Apache-2.0
// The special registers.
#include "ptx/forms.h"
#include "tilewright/module.h"

#include <array>

namespace tilewright::ptx {
namespace {

constexpr Requires kAlways{{1, 0}, "sm_50+"};
constexpr Requires kCluster{{7, 8}, "sm_90+"};

// clang-format off
constexpr SpecialRegister kNamed[] = {
    {"%tid", Type::u32, 3, kAlways},
    {"%ntid", Type::u32, 3, kAlways},
    {"%ctaid", Type::u32, 3, kAlways},
    {"%nctaid", Type::u32, 3, kAlways},
    {"%laneid", Type::u32, 0, kAlways},
    {"%warpid", Type::u32, 0, kAlways},
    {"%nwarpid", Type::u32, 0, kAlways},
    {"%smid", Type::u32, 0, kAlways},
    {"%nsmid", Type::u32, 0, kAlways},
    {"%gridid", Type::u64, 0, kAlways},
    {"%lanemask_eq", Type::u32, 0, kAlways},
    {"%lanemask_le", Type::u32, 0, kAlways},
    {"%lanemask_lt", Type::u32, 0, kAlways},
    {"%lanemask_ge", Type::u32, 0, kAlways},
    {"%lanemask_gt", Type::u32, 0, kAlways},
    {"%clock", Type::u32, 0, kAlways},
    {"%clock_hi", Type::u32, 0, {{5, 0}, "sm_50+"}},
    {"%clock64", Type::u64, 0, kAlways},
    {"%globaltimer", Type::u64, 0, kAlways},
    {"%globaltimer_lo", Type::u32, 0, kAlways},
    {"%globaltimer_hi", Type::u32, 0, kAlways},
    {"%is_explicit_cluster", Type::pred, 0, kCluster},
    {"%clusterid", Type::u32, 3, kCluster},
    {"%nclusterid", Type::u32, 3, kCluster},
    {"%cluster_ctaid", Type::u32, 3, kCluster},
    {"%cluster_nctaid", Type::u32, 3, kCluster},
    {"%cluster_ctarank", Type::u32, 0, kCluster},
    {"%cluster_nctarank", Type::u32, 0, kCluster},
    {"%total_smem_size", Type::u32, 0, {{4, 1}, "sm_50+"}},
    {"%dynamic_smem_size", Type::u32, 0, {{4, 1}, "sm_50+"}},
    {"%aggr_smem_size", Type::u32, 0, {{8, 1}, "sm_90+"}},
    {"%reserved_smem_offset_begin", Type::b32, 0, {{7, 6}, "sm_80+"}},
    {"%reserved_smem_offset_end", Type::b32, 0, {{7, 6}, "sm_80+"}},
    {"%reserved_smem_offset_cap", Type::b32, 0, {{7, 6}, "sm_80+"}},
    {"%reserved_smem_offset_0", Type::b32, 0, {{7, 6}, "sm_80+"}},
    {"%reserved_smem_offset_1", Type::b32, 0, {{7, 6}, "sm_80+"}},
    {"%current_graph_exec", Type::u64, 0, {{8, 0}, "sm_50+"}},
    {"%pm0", Type::u32, 0, kAlways},   {"%pm1", Type::u32, 0, kAlways},
    {"%pm2", Type::u32, 0, kAlways},   {"%pm3", Type::u32, 0, kAlways},
    {"%pm4", Type::u32, 0, kAlways},   {"%pm5", Type::u32, 0, kAlways},
    {"%pm6", Type::u32, 0, kAlways},   {"%pm7", Type::u32, 0, kAlways},
    {"%pm0_64", Type::u64, 0, kAlways}, {"%pm1_64", Type::u64, 0, kAlways},
    {"%pm2_64", Type::u64, 0, kAlways}, {"%pm3_64", Type::u64, 0, kAlways},
    {"%pm4_64", Type::u64, 0, kAlways}, {"%pm5_64", Type::u64, 0, kAlways},
    {"%pm6_64", Type::u64, 0, kAlways}, {"%pm7_64", Type::u64, 0, kAlways},
};
constexpr std::string_view kEnvreg[] = {
    "%envreg0",  "%envreg1",  "%envreg2",  "%envreg3",  "%envreg4",  "%envreg5",  "%envreg6",
    "%envreg7",  "%envreg8",  "%envreg9",  "%envreg10", "%envreg11", "%envreg12", "%envreg13",
    "%envreg14", "%envreg15", "%envreg16", "%envreg17", "%envreg18", "%envreg19", "%envreg20",
    "%envreg21", "%envreg22", "%envreg23", "%envreg24", "%envreg25", "%envreg26", "%envreg27",
    "%envreg28", "%envreg29", "%envreg30", "%envreg31",
};
// clang-format on
constexpr std::size_t kCount = std::size(kNamed) + std::size(kEnvreg);

constexpr std::array<SpecialRegister, kCount> all() {
  std::array<SpecialRegister, kCount> out{};
  std::size_t n = 0;
  for (const SpecialRegister& r : kNamed)
    out[n++] = r;
  for (const std::string_view name : kEnvreg)
    out[n++] = {name, Type::b32, 0, kAlways};
  return out;
}
constexpr std::array<SpecialRegister, kCount> kAll = all();

std::optional<Operand> find(std::string_view name) {
  std::int8_t component = -1;
  if (name.size() > 2 && name[name.size() - 2] == '.') {
    constexpr std::string_view kComponents = "xyzw";
    const std::size_t at = kComponents.find(name.back());
    if (at == std::string_view::npos) return std::nullopt;
    component = static_cast<std::int8_t>(at);
    name.remove_suffix(2);
  }
  for (std::size_t i = 0; i < kAll.size(); ++i) {
    if (kAll[i].name != name) continue;
    if ((component < 0) != (kAll[i].components == 0)) return std::nullopt;
    Operand out;
    out.kind = Operand::Kind::special;
    out.component = component;
    out.type = kAll[i].type;
    out.id = static_cast<std::uint32_t>(i);
    return out;
  }
  return std::nullopt;
}

}  // namespace

std::span<const SpecialRegister> special_registers() { return kAll; }

std::optional<Operand> find_special(std::string_view name) { return find(name); }

Operand special(std::string_view name) {
  if (const std::optional<Operand> found = find(name)) return *found;
  throw Error(ErrorKind::user, "no special register is called '" + std::string(name.substr(0, 64)) +
                                   "'; those with components are written %tid.x, %ctaid.y");
}

}  // namespace tilewright::ptx
