// SPDX-License-Identifier: Apache-2.0
// Rows that only sm_100 and later have: printed, parsed and capability-checked, not executed yet.
#include "ptx/forms.h"

namespace tilewright::ptx::detail {
namespace {

constexpr std::array<Requires, 2> kTcgen05 = since(8, 6, "100f,110f");
constexpr std::array<Requires, 2> kMmaKinds = since(8, 7, "120f");

// clang-format off
constexpr Form kBlackwellRows[] = {
    // Tensor copies: gather, scatter, im2col::w, pairs of blocks.
    {"cp", ".async .bulk .tensor .2d .shared::cluster .global .tile::gather4 .mbarrier::complete_tx::bytes .multicast::cluster? .L2::cache_hint?", "[a], [t{5}], [m], k:b16?multicast::cluster, h:b64?L2::cache_hint", kTcgen05, Effect::none},
    {"cp", ".async .bulk .tensor .2d .shared::cta .global .tile::gather4 .mbarrier::complete_tx::bytes .L2::cache_hint?", "[a], [t{5}], [m], h:b64?L2::cache_hint", kSm100, Effect::none},
    {"cp", ".async .bulk .tensor .<dim> .shared::cluster .global .tile? .mbarrier::complete_tx::bytes .multicast::cluster? .{cta_group::1,cta_group::2} .L2::cache_hint?", "[a], [t{dim}], [m], k:b16?multicast::cluster, h:b64?L2::cache_hint", kTcgen05, Effect::none},
    {"cp", ".async .bulk .tensor .{3d,4d,5d} .shared::cluster .global .{im2col::w,im2col::w::128} .mbarrier::complete_tx::bytes .multicast::cluster? .L2::cache_hint?", "[a], [t{dim}], [m], i{2}:b16, k:b16?multicast::cluster, h:b64?L2::cache_hint", kTcgen05, Effect::none},
    {"cp", ".async .bulk .tensor .2d .global .shared::cta .tile::scatter4 .bulk_group .L2::cache_hint?", "[t{5}], [b], h:b64?L2::cache_hint", kTcgen05, Effect::none},
    {"cp", ".async .bulk .prefetch .tensor .2d .L2 .global .tile::gather4 .L2::cache_hint?", "[t{5}], h:b64?L2::cache_hint", kTcgen05, Effect::none},

    // Work stealing.
    {"clusterlaunchcontrol", ".try_cancel .async .{shared::cta}? .mbarrier::complete_tx::bytes .b128", "[a], [m]", kSm100, Effect::none},
    {"clusterlaunchcontrol", ".try_cancel .async .{shared::cta}? .mbarrier::complete_tx::bytes .multicast::cluster::all .b128", "[a], [m]", since(8, 6, "100f,110f,120f"), Effect::none},
    {"clusterlaunchcontrol", ".query_cancel .is_canceled .pred .b128", "p:pred, %a:b128", kSm100, Effect::none},
    {"clusterlaunchcontrol", ".query_cancel .get_first_ctaid .v4 .b32 .b128", "d{4}:b32, %a:b128", kSm100, Effect::none},
    {"clusterlaunchcontrol", ".query_cancel .{get_first_ctaid::x,get_first_ctaid::y,get_first_ctaid::z} .b32 .b128", "d:b32, %a:b128", kSm100, Effect::none},

    // mma of fp8, fp6 and fp4, with and without scales.
    {"mma", ".sync .aligned .m16n8k32 .row .col .kind::f8f6f4 .f32 .<f8f6f4> .<f8f6f4> .f32", "d{4}:f32, a{4}:b32, b{2}:b32, c{4}:f32", kMmaKinds, Effect::none},
    {"mma", ".sync .aligned .m16n8k32 .row .col .kind::f8f6f4 .f16 .<f8f6f4> .<f8f6f4> .f16", "d{2}:b32, a{4}:b32, b{2}:b32, c{2}:b32", kMmaKinds, Effect::none},
    {"mma", ".sync .aligned .m16n8k32 .row .col .kind::mxf8f6f4 .block_scale .scale_vec::1X? .f32 .<f8f6f4> .<f8f6f4> .f32 .ue8m0", "d{4}:f32, a{4}:b32, b{2}:b32, c{4}:f32, s:b32, x{2}:b16, t:b32, y{2}:b16", kMmaKinds, Effect::none},
    {"mma", ".sync .aligned .m16n8k64 .row .col .kind::mxf4 .block_scale .scale_vec::2X? .f32 .e2m1 .e2m1 .f32 .ue8m0", "d{4}:f32, a{4}:b32, b{2}:b32, c{4}:f32, s:b32, x{2}:b16, t:b32, y{2}:b16", kMmaKinds, Effect::none},
    {"mma", ".sync .aligned .m16n8k64 .row .col .kind::mxf4nvf4 .block_scale .scale_vec::2X .f32 .e2m1 .e2m1 .f32 .ue8m0", "d{4}:f32, a{4}:b32, b{2}:b32, c{4}:f32, s:b32, x{2}:b16, t:b32, y{2}:b16", kMmaKinds, Effect::none},
    {"mma", ".sync .aligned .m16n8k64 .row .col .kind::mxf4nvf4 .block_scale .scale_vec::4X .f32 .e2m1 .e2m1 .f32 .ue4m3", "d{4}:f32, a{4}:b32, b{2}:b32, c{4}:f32, s:b32, x{2}:b16, t:b32, y{2}:b16", kMmaKinds, Effect::none},

    // tcgen05: the tensor memory and its matrix unit.
    {"tcgen05", ".alloc .<cta_group> .sync .aligned .{shared::cta}? .b32", "[a], b:u32", kTcgen05, Effect::none},
    {"tcgen05", ".dealloc .<cta_group> .sync .aligned .b32", "a, b:u32", kTcgen05, Effect::none},
    {"tcgen05", ".relinquish_alloc_permit .<cta_group> .sync .aligned", "", kTcgen05, Effect::none},
    {"tcgen05", ".ld .sync .aligned .{32x32b,16x64b} .{x1,x2,x4,x8,x16,x32,x64,x128} .pack::16b? .b32", "d{x}, [t:b32]", kTcgen05, Effect::none},
    {"tcgen05", ".ld .sync .aligned .16x128b .{x1,x2,x4,x8,x16,x32,x64} .pack::16b? .b32", "d{2x}, [t:b32]", kTcgen05, Effect::none},
    {"tcgen05", ".ld .sync .aligned .16x256b .{x1,x2,x4,x8,x16,x32} .pack::16b? .b32", "d{4x}, [t:b32]", kTcgen05, Effect::none},
    {"tcgen05", ".ld .sync .aligned .16x32bx2 .{x1,x2,x4,x8,x16,x32,x64,x128} .pack::16b? .b32", "d{x}, [t:b32], #i", kTcgen05, Effect::none},
    {"tcgen05", ".ld .red .sync .aligned .{32x32b} .{x2,x4,x8,x16,x32,x64,x128} .{min,max} .abs? .NaN? .f32", "...", since(8, 8, "103a,110a"), Effect::none},
    {"tcgen05", ".ld .red .sync .aligned .{32x32b} .{x2,x4,x8,x16,x32,x64,x128} .{min,max} .{u32,s32}", "...", since(8, 8, "103a,110a"), Effect::none},
    {"tcgen05", ".st .sync .aligned .{32x32b,16x64b} .{x1,x2,x4,x8,x16,x32,x64,x128} .unpack::16b? .b32", "[t:b32], a{x}", kTcgen05, Effect::none},
    {"tcgen05", ".st .sync .aligned .16x128b .{x1,x2,x4,x8,x16,x32,x64} .unpack::16b? .b32", "[t:b32], a{2x}", kTcgen05, Effect::none},
    {"tcgen05", ".st .sync .aligned .16x256b .{x1,x2,x4,x8,x16,x32} .unpack::16b? .b32", "[t:b32], a{4x}", kTcgen05, Effect::none},
    {"tcgen05", ".st .sync .aligned .16x32bx2 .{x1,x2,x4,x8,x16,x32,x64,x128} .unpack::16b? .b32", "[t:b32], #i, a{x}", kTcgen05, Effect::none},
    {"tcgen05", ".{wait::ld,wait::st} .sync .aligned", "", kTcgen05, Effect::none},
    {"tcgen05", ".cp .<cta_group> .{128x256b,4x256b,128x128b} .{b8x16}? .{b6x16_p32,b4x16_p64}+", "[t:b32], a:b64", kTcgen05, Effect::none},
    {"tcgen05", ".cp .<cta_group> .64x128b .{warpx2::02_13,warpx2::01_23} .{b8x16}? .{b6x16_p32,b4x16_p64}+", "[t:b32], a:b64", kTcgen05, Effect::none},
    {"tcgen05", ".cp .<cta_group> .32x128b .warpx4 .{b8x16}? .{b6x16_p32,b4x16_p64}+", "[t:b32], a:b64", kTcgen05, Effect::none},
    {"tcgen05", ".shift .<cta_group> .down", "[t:b32]", since(8, 6, "100a,103a,110a"), Effect::none},
    {"tcgen05", ".mma .sp? .<cta_group> .{kind::f16,kind::tf32,kind::f8f6f4} .ashift? .<collector_a>?", "...", kTcgen05, Effect::none},
    {"tcgen05", ".mma .sp? .<cta_group> .kind::i8 .ashift? .<collector_a>?", "...", since(8, 6, "100a,110a"), Effect::none},
    {"tcgen05", ".mma .sp? .<cta_group> .{kind::mxf8f6f4,kind::mxf4} .block_scale .{block32}? .<collector_a>?", "...", kTcgen05, Effect::none},
    {"tcgen05", ".mma .sp? .<cta_group> .{kind::mxf8f6f4,kind::mxf4,kind::mxf4nvf4} .block_scale .{scale_vec::1X,scale_vec::2X,scale_vec::4X} .<collector_a>?", "...", since(8, 7, "100a,103a,110a"), Effect::none},
    {"tcgen05", ".mma .sp? .<cta_group> .kind::mxf4nvf4 .block_scale .{block16,block32} .<collector_a>?", "...", since(8, 8, "100f,110f"), Effect::none},
    {"tcgen05", ".mma .ws .sp? .cta_group::1 .{kind::f16,kind::tf32,kind::f8f6f4} .<collector_b>?", "...", kTcgen05, Effect::none},
    {"tcgen05", ".mma .ws .sp? .cta_group::1 .kind::i8 .<collector_b>?", "...", since(8, 6, "100a,110a"), Effect::none},
    {"tcgen05", ".commit .<cta_group> .mbarrier::arrive::one .{shared::cluster}? .multicast::cluster? .b64", "[m], k:b16?multicast::cluster", kTcgen05, Effect::none},
    {"tcgen05", ".{fence::before_thread_sync,fence::after_thread_sync}", "", kTcgen05, Effect::none},
};
// clang-format on

}  // namespace

std::span<const Form> blackwell_forms() { return kBlackwellRows; }

}  // namespace tilewright::ptx::detail
