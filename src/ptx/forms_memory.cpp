// SPDX-License-Identifier: Apache-2.0
// Rows of loads, stores, atomics and cache control.
#include "ptx/forms.h"

namespace tilewright::ptx::detail {
namespace {

constexpr std::array<Requires, 2> kB128 = since(8, 3, "sm_70+");
constexpr std::array<Requires, 2> kB128Atom = since(8, 3, "sm_90+");
constexpr std::array<Requires, 2> kB128Sys = since(8, 4, "sm_70+");
constexpr std::array<Requires, 2> kB128AtomSys = since(8, 4, "sm_90+");
constexpr std::array<Requires, 2> kHints = since(7, 4, "sm_80+");

// clang-format off
constexpr Form kMemoryRows[] = {
    {"ld", ".weak? .<ld_space>? .<ld_cop>? .<l1>? .L2::cache_hint? .<l2_size>? .v2? .<ldst>", "d{v}~, [a], h:b64?L2::cache_hint", kAny, Effect::load},
    {"ld", ".weak? .<ld_space>? .<ld_cop>? .<l1>? .L2::cache_hint? .<l2_size>? .v4 .<narrow>", "d{v}~, [a], h:b64?L2::cache_hint", kAny, Effect::load},
    {"ld", ".weak? .global? .<ld_cop>? .<l1>? .<l2>? .L2::cache_hint? .<l2_size>? .v8 .{b32,u32,s32,f32}", "d{v}~, [a], h:b64?L2::cache_hint", kSm100v88, Effect::load},
    {"ld", ".weak? .global? .<ld_cop>? .<l1>? .<l2>? .L2::cache_hint? .<l2_size>? .v4 .<wide4>", "d{v}~, [a], h:b64?L2::cache_hint", kSm100v88, Effect::load},
    {"ld", ".{relaxed,acquire} .<scope> .<strong_space>? .<l1>? .L2::cache_hint? .<l2_size>? .v2? .<ldst>", "d{v}~, [a], h:b64?L2::cache_hint", kVolta, Effect::load},
    {"ld", ".{relaxed,acquire} .<scope> .<strong_space>? .<l1>? .L2::cache_hint? .<l2_size>? .v4 .<narrow>", "d{v}~, [a], h:b64?L2::cache_hint", kVolta, Effect::load},
    {"ld", ".{relaxed,acquire} .<scope> .global? .<l1>? .<l2>? .L2::cache_hint? .<l2_size>? .v8 .{b32,u32,s32,f32}", "d{v}~, [a], h:b64?L2::cache_hint", kSm100v88, Effect::load},
    {"ld", ".{relaxed,acquire} .<scope> .global? .<l1>? .<l2>? .L2::cache_hint? .<l2_size>? .v4 .<wide4>", "d{v}~, [a], h:b64?L2::cache_hint", kSm100v88, Effect::load},
    {"ld", ".global .{ca,cg,cs}? .nc .<l1>? .L2::cache_hint? .<l2_size>? .v2? .<ldst>", "d{v}~, [a], h:b64?L2::cache_hint", kAny, Effect::load},
    {"ld", ".global .{ca,cg,cs}? .nc .<l1>? .L2::cache_hint? .<l2_size>? .v4 .<narrow>", "d{v}~, [a], h:b64?L2::cache_hint", kAny, Effect::load},
    {"ld", ".global .{ca,cg,cs}? .nc .<l1>? .<l2>? .L2::cache_hint? .<l2_size>? .v8 .{b32,u32,s32,f32}", "d{v}~, [a], h:b64?L2::cache_hint", kSm100v88, Effect::load},
    {"ld", ".global .{ca,cg,cs}? .nc .<l1>? .<l2>? .L2::cache_hint? .<l2_size>? .v4 .<wide4>", "d{v}~, [a], h:b64?L2::cache_hint", kSm100v88, Effect::load},
    {"ld", ".volatile .<strong_space>? .<l2_size>? .v2? .<ldst>", "d{v}~, [a]", kAny, Effect::load},
    {"ld", ".volatile .<strong_space>? .<l2_size>? .v4 .<narrow>", "d{v}~, [a]", kAny, Effect::load},
    {"ld", ".mmio .relaxed .sys .global? .<ldst>", "d~, [a]", since(8, 2, "sm_70+"), Effect::load},
    {"ld", ".weak? .<ld_space>? .<ld_cop>? .<l1>? .L2::cache_hint? .<l2_size>? .b128", "d, [a], h:b64?L2::cache_hint", kB128, Effect::load},
    {"ld", ".{relaxed,acquire} .{cta,cluster,gpu} .<strong_space>? .<l1>? .L2::cache_hint? .<l2_size>? .b128", "d, [a], h:b64?L2::cache_hint", kB128, Effect::load},
    {"ld", ".{relaxed,acquire} .sys .<strong_space>? .<l1>? .L2::cache_hint? .<l2_size>? .b128", "d, [a], h:b64?L2::cache_hint", kB128Sys, Effect::load},
    {"ld", ".global .{ca,cg,cs}? .nc .<l1>? .L2::cache_hint? .<l2_size>? .b128", "d, [a], h:b64?L2::cache_hint", kB128, Effect::load},
    {"ldu", ".global? .v2? .<ldst>", "d{v}~, [a]", kAny, Effect::load},
    {"ldu", ".global? .v4 .<narrow>", "d{v}~, [a]", kAny, Effect::load},

    {"st", ".weak? .<st_space>? .<st_cop>? .<l1>? .L2::cache_hint? .v2? .<ldst>", "[a], b{v}~, h:b64?L2::cache_hint", kAny, Effect::store},
    {"st", ".weak? .<st_space>? .<st_cop>? .<l1>? .L2::cache_hint? .v4 .<narrow>", "[a], b{v}~, h:b64?L2::cache_hint", kAny, Effect::store},
    {"st", ".weak? .global? .<st_cop>? .<l1>? .<l2>? .L2::cache_hint? .v8 .{b32,u32,s32,f32}", "[a], b{v}~, h:b64?L2::cache_hint", kSm100v88, Effect::store},
    {"st", ".weak? .global? .<st_cop>? .<l1>? .<l2>? .L2::cache_hint? .v4 .<wide4>", "[a], b{v}~, h:b64?L2::cache_hint", kSm100v88, Effect::store},
    {"st", ".{relaxed,release} .<scope> .<strong_space>? .<l1>? .L2::cache_hint? .v2? .<ldst>", "[a], b{v}~, h:b64?L2::cache_hint", kVolta, Effect::store},
    {"st", ".{relaxed,release} .<scope> .<strong_space>? .<l1>? .L2::cache_hint? .v4 .<narrow>", "[a], b{v}~, h:b64?L2::cache_hint", kVolta, Effect::store},
    {"st", ".{relaxed,release} .<scope> .global? .<l1>? .<l2>? .L2::cache_hint? .v8 .{b32,u32,s32,f32}", "[a], b{v}~, h:b64?L2::cache_hint", kSm100v88, Effect::store},
    {"st", ".{relaxed,release} .<scope> .global? .<l1>? .<l2>? .L2::cache_hint? .v4 .<wide4>", "[a], b{v}~, h:b64?L2::cache_hint", kSm100v88, Effect::store},
    {"st", ".volatile .<strong_space>? .v2? .<ldst>", "[a], b{v}~", kAny, Effect::store},
    {"st", ".volatile .<strong_space>? .v4 .<narrow>", "[a], b{v}~", kAny, Effect::store},
    {"st", ".mmio .relaxed .sys .global? .<ldst>", "[a], b~", since(8, 2, "sm_70+"), Effect::store},
    {"st", ".weak? .<st_space>? .<st_cop>? .<l1>? .L2::cache_hint? .b128", "[a], b, h:b64?L2::cache_hint", kB128, Effect::store},
    {"st", ".{relaxed,release} .{cta,cluster,gpu} .<strong_space>? .<l1>? .L2::cache_hint? .b128", "[a], b, h:b64?L2::cache_hint", kB128, Effect::store},
    {"st", ".{relaxed,release} .sys .<strong_space>? .<l1>? .L2::cache_hint? .b128", "[a], b, h:b64?L2::cache_hint", kB128Sys, Effect::store},

    {"prefetch", ".{global,local}? .{L1,L2}", "[a]", kAny, Effect::prefetch},
    {"prefetch", ".global .{L2::evict_last,L2::evict_normal}", "[a]", since(7, 4, "sm_80+"), Effect::prefetch},
    {"prefetch", ".{const,param}? .tensormap", "[a]", kSm90v80, Effect::tensor_prefetch},
    {"prefetchu", ".L1", "[a]", kAny, Effect::prefetch},
    {"applypriority", ".global? .L2::evict_normal", "[a], #b=128..128", kHints, Effect::prefetch},
    {"discard", ".global? .L2", "[a], #b=128..128", kHints, Effect::prefetch},
    {"createpolicy", ".fractional .{L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged} .{L2::evict_first,L2::evict_unchanged}? .b64", "d, a:f32?", kHints, Effect::lane},
    {"createpolicy", ".range .global? .{L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged} .{L2::evict_first,L2::evict_unchanged}? .b64", "d, [a], b:u32, c:u32", kHints, Effect::lane},
    {"createpolicy", ".cvt .L2 .b64", "d, a:b64", kHints, Effect::lane},

    // Atomics.
    {"atom", ".<sem>? .<scope>? .<atom_space>? .{and,or,xor} .L2::cache_hint? .{b32,b64}", "d_, [a], b, h:b64?L2::cache_hint", kAny, Effect::atomic},
    {"atom", ".<sem>? .<scope>? .<atom_space>? .exch .L2::cache_hint? .{b32,b64}", "d_, [a], b, h:b64?L2::cache_hint", kAny, Effect::atomic},
    {"atom", ".<sem>? .<scope>? .<atom_space>? .cas .{b32,b64}", "d_, [a], b, c", kAny, Effect::atomic},
    {"atom", ".<sem>? .<scope>? .<atom_space>? .cas .b16", "d_, [a], b, c", since(6, 3, "sm_70+"), Effect::atomic},
    {"atom", ".<sem>? .{cta,cluster,gpu}? .<atom_space>? .exch .L2::cache_hint? .b128", "d_, [a], %b, h:b64?L2::cache_hint", kB128Atom, Effect::atomic},
    {"atom", ".<sem>? .sys .<atom_space>? .exch .L2::cache_hint? .b128", "d_, [a], %b, h:b64?L2::cache_hint", kB128AtomSys, Effect::atomic},
    {"atom", ".<sem>? .{cta,cluster,gpu}? .<atom_space>? .cas .b128", "d_, [a], %b, %c", kB128Atom, Effect::atomic},
    {"atom", ".<sem>? .sys .<atom_space>? .cas .b128", "d_, [a], %b, %c", kB128AtomSys, Effect::atomic},
    {"atom", ".<sem>? .<scope>? .<atom_space>? .add .L2::cache_hint? .{u32,s32,u64,f32}", "d_, [a], b, h:b64?L2::cache_hint", kAny, Effect::atomic},
    {"atom", ".<sem>? .<scope>? .<atom_space>? .add .L2::cache_hint? .f64", "d_, [a], b, h:b64?L2::cache_hint", since(5, 0, "sm_60+"), Effect::atomic},
    {"atom", ".<sem>? .<scope>? .<atom_space>? .add .noftz .L2::cache_hint? .{f16,f16x2}", "d_, [a], %b, h:b64?L2::cache_hint", since(6, 3, "sm_70+"), Effect::atomic},
    {"atom", ".<sem>? .<scope>? .<atom_space>? .add .noftz .L2::cache_hint? .{bf16,bf16x2}", "d_, [a], %b, h:b64?L2::cache_hint", kSm90, Effect::atomic},
    {"atom", ".<sem>? .<scope>? .<atom_space>? .{inc,dec} .L2::cache_hint? .u32", "d_, [a], b, h:b64?L2::cache_hint", kAny, Effect::atomic},
    {"atom", ".<sem>? .<scope>? .<atom_space>? .{min,max} .L2::cache_hint? .{u32,s32,u64,s64}", "d_, [a], b, h:b64?L2::cache_hint", kAny, Effect::atomic},
    {"atom", ".<sem>? .<scope>? .global? .add .L2::cache_hint? .{v2,v4} .f32", "d{v}_, [a], b{v}, h:b64?L2::cache_hint", kSm90v81, Effect::vector_atomic},
    {"atom", ".<sem>? .<scope>? .global? .{add,min,max} .noftz .L2::cache_hint? .{v2,v4,v8} .{f16,bf16}", "d{v}_, [a], %b{v}, h:b64?L2::cache_hint", kSm90v81, Effect::vector_atomic},
    {"atom", ".<sem>? .<scope>? .global? .{add,min,max} .noftz .L2::cache_hint? .{v2,v4} .{f16x2,bf16x2}", "d{v}_, [a], %b{v}, h:b64?L2::cache_hint", kSm90v81, Effect::vector_atomic},

    {"red", ".{relaxed,release}? .<scope>? .<atom_space>? .{and,or,xor} .L2::cache_hint? .{b32,b64}", "[a], b, h:b64?L2::cache_hint", kAny, Effect::reduction},
    {"red", ".{relaxed,release}? .<scope>? .<atom_space>? .add .L2::cache_hint? .{u32,s32,u64,f32}", "[a], b, h:b64?L2::cache_hint", kAny, Effect::reduction},
    {"red", ".{relaxed,release}? .<scope>? .<atom_space>? .add .L2::cache_hint? .f64", "[a], b, h:b64?L2::cache_hint", since(5, 0, "sm_60+"), Effect::reduction},
    {"red", ".{relaxed,release}? .<scope>? .<atom_space>? .add .noftz .L2::cache_hint? .{f16,f16x2}", "[a], %b, h:b64?L2::cache_hint", since(6, 3, "sm_70+"), Effect::reduction},
    {"red", ".{relaxed,release}? .<scope>? .<atom_space>? .add .noftz .L2::cache_hint? .{bf16,bf16x2}", "[a], %b, h:b64?L2::cache_hint", kSm90, Effect::reduction},
    {"red", ".{relaxed,release}? .<scope>? .<atom_space>? .{inc,dec} .L2::cache_hint? .u32", "[a], b, h:b64?L2::cache_hint", kAny, Effect::reduction},
    {"red", ".{relaxed,release}? .<scope>? .<atom_space>? .{min,max} .L2::cache_hint? .{u32,s32,u64,s64}", "[a], b, h:b64?L2::cache_hint", kAny, Effect::reduction},
    {"red", ".{relaxed,release}? .<scope>? .global? .add .L2::cache_hint? .{v2,v4} .f32", "[a], b{v}, h:b64?L2::cache_hint", kSm90v81, Effect::vector_atomic},
    {"red", ".{relaxed,release}? .<scope>? .global? .{add,min,max} .noftz .L2::cache_hint? .{v2,v4,v8} .{f16,bf16}", "[a], %b{v}, h:b64?L2::cache_hint", kSm90v81, Effect::vector_atomic},
    {"red", ".{relaxed,release}? .<scope>? .global? .{add,min,max} .noftz .L2::cache_hint? .{v2,v4} .{f16x2,bf16x2}", "[a], %b{v}, h:b64?L2::cache_hint", kSm90v81, Effect::vector_atomic},

    // Remote shared memory, completing on an mbarrier.
    {"st", ".async .weak? .{shared::cluster}? .mbarrier::complete_tx::bytes .v2? .{b32,b64,u32,u64,s32,s64,f32,f64}", "[a], b{v}, [m]", kSm90v81, Effect::store_async},
    {"st", ".async .weak? .{shared::cluster}? .mbarrier::complete_tx::bytes .v4 .{b32,u32,s32,f32}", "[a], b{v}, [m]", kSm90v81, Effect::store_async},
    {"st", ".async .mmio? .release .{gpu,sys} .global .{b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64}", "[a], b~", since(8, 7, "sm_100+"), Effect::none},
    {"st", ".bulk .weak? .{shared::cta}?", "[a], b:u64, #c=0..0", kSm100, Effect::none},
    {"red", ".async .relaxed .cluster .{shared::cluster}? .mbarrier::complete_tx::bytes .{inc,dec} .u32", "[a], b, [m]", kSm90v81, Effect::reduction_async},
    {"red", ".async .relaxed .cluster .{shared::cluster}? .mbarrier::complete_tx::bytes .{min,max} .{u32,s32}", "[a], b, [m]", kSm90v81, Effect::reduction_async},
    {"red", ".async .relaxed .cluster .{shared::cluster}? .mbarrier::complete_tx::bytes .add .{u32,s32,u64}", "[a], b, [m]", kSm90v81, Effect::reduction_async},
    {"red", ".async .relaxed .cluster .{shared::cluster}? .mbarrier::complete_tx::bytes .{and,or,xor} .b32", "[a], b, [m]", kSm90v81, Effect::reduction_async},
    {"red", ".async .mmio? .release .{gpu,sys} .global .add .{u32,s32,u64,s64}", "[a], b", since(8, 7, "sm_100+"), Effect::none},

    // Multicast memory.
    {"multimem", ".ld_reduce .weak? .global? .{min,max} .{u32,s32,u64,s64}", "d, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .weak? .global? .add .{u32,s32,u64}", "d, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .weak? .global? .{and,or,xor} .{b32,b64}", "d, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .{relaxed,acquire} .<scope> .global? .{min,max} .{u32,s32,u64,s64}", "d, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .{relaxed,acquire} .<scope> .global? .add .{u32,s32,u64}", "d, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .{relaxed,acquire} .<scope> .global? .{and,or,xor} .{b32,b64}", "d, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .weak? .global? .add .{v2,v4}? .f32", "d{v}, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .weak? .global? .add .f64", "d, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .weak? .global? .{min,max,add} .{v2,v4,v8} .{f16,bf16}", "d{v}, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .weak? .global? .{min,max,add} .{v2,v4}? .{f16x2,bf16x2}", "d{v}, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .weak? .global? .add .acc::f32 .{v2,v4,v8} .{f16,bf16}", "d{v}, [a]", since(8, 2, "sm_90+"), Effect::multimem},
    {"multimem", ".ld_reduce .weak? .global? .add .acc::f32 .{v2,v4}? .{f16x2,bf16x2}", "d{v}, [a]", since(8, 2, "sm_90+"), Effect::multimem},
    {"multimem", ".ld_reduce .{relaxed,acquire} .<scope> .global? .add .{v2,v4}? .f32", "d{v}, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .{relaxed,acquire} .<scope> .global? .add .f64", "d, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .{relaxed,acquire} .<scope> .global? .{min,max,add} .{v2,v4,v8} .{f16,bf16}", "d{v}, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .{relaxed,acquire} .<scope> .global? .{min,max,add} .{v2,v4}? .{f16x2,bf16x2}", "d{v}, [a]", kSm90v81, Effect::multimem},
    {"multimem", ".ld_reduce .{relaxed,acquire} .<scope> .global? .add .acc::f32 .{v2,v4,v8} .{f16,bf16}", "d{v}, [a]", since(8, 2, "sm_90+"), Effect::multimem},
    {"multimem", ".ld_reduce .{relaxed,acquire} .<scope> .global? .add .acc::f32 .{v2,v4}? .{f16x2,bf16x2}", "d{v}, [a]", since(8, 2, "sm_90+"), Effect::multimem},
    {"multimem", ".ld_reduce .weak? .global? .{min,max,add} .{v2,v4}? .{e4m3x4,e5m2x4}", "d{v}:b32, [a]", since(8, 6, "100f,110f,120a,121a"), Effect::none},
    {"multimem", ".ld_reduce .weak? .global? .add .acc::f16 .{v2,v4}? .{e4m3x4,e5m2x4}", "d{v}:b32, [a]", since(8, 6, "100f,110f,120a,121a"), Effect::none},
    {"multimem", ".st .weak? .global? .{b32,u32,s32,b64,u64,s64,f64}", "[a], b", kSm90v81, Effect::multimem},
    {"multimem", ".st .{relaxed,release} .<scope> .global? .{b32,u32,s32,b64,u64,s64,f64}", "[a], b", kSm90v81, Effect::multimem},
    {"multimem", ".st .weak? .global? .{v2,v4}? .{f32,f16x2,bf16x2}", "[a], b{v}", kSm90v81, Effect::multimem},
    {"multimem", ".st .weak? .global? .{v2,v4,v8} .{f16,bf16}", "[a], b{v}", kSm90v81, Effect::multimem},
    {"multimem", ".st .{relaxed,release} .<scope> .global? .{v2,v4}? .{f32,f16x2,bf16x2}", "[a], b{v}", kSm90v81, Effect::multimem},
    {"multimem", ".st .{relaxed,release} .<scope> .global? .{v2,v4,v8} .{f16,bf16}", "[a], b{v}", kSm90v81, Effect::multimem},
    {"multimem", ".red .{relaxed,release}? .<scope>+ .global? .{min,max} .{u32,s32,u64,s64}", "[a], b", kSm90v81, Effect::multimem},
    {"multimem", ".red .{relaxed,release}? .<scope>+ .global? .add .{u32,s32,u64}", "[a], b", kSm90v81, Effect::multimem},
    {"multimem", ".red .{relaxed,release}? .<scope>+ .global? .{and,or,xor} .{b32,b64}", "[a], b", kSm90v81, Effect::multimem},
    {"multimem", ".red .{relaxed,release}? .<scope>+ .global? .add .{v2,v4}? .f32", "[a], b{v}", kSm90v81, Effect::multimem},
    {"multimem", ".red .{relaxed,release}? .<scope>+ .global? .add .f64", "[a], b", kSm90v81, Effect::multimem},
    {"multimem", ".red .{relaxed,release}? .<scope>+ .global? .{min,max,add} .{v2,v4,v8} .{f16,bf16}", "[a], b{v}", kSm90v81, Effect::multimem},
    {"multimem", ".red .{relaxed,release}? .<scope>+ .global? .{min,max,add} .{v2,v4} .{f16x2,bf16x2}", "[a], b{v}", kSm90v81, Effect::multimem},
    {"multimem", ".red .{relaxed,release}? .<scope>+ .global? .add .{f16x2,bf16x2}", "[a], b{v}", kSm90v81, Effect::multimem},
};
// clang-format on

}  // namespace

std::span<const Form> memory_forms() { return kMemoryRows; }

}  // namespace tilewright::ptx::detail
