// SPDX-License-Identifier: Apache-2.0
// Rows of moves and conversions, of values and of addresses.
#include "ptx/forms.h"

namespace tilewright::ptx::detail {
namespace {

constexpr std::array<Requires, 2> kFp8 = {Requires{{8, 1}, "sm_89+"}, Requires{{7, 8}, "sm_90+"}};
constexpr std::string_view kFp6Targets = "100f,110f,120f";
constexpr std::array<Requires, 2> kFp6 = since(8, 6, kFp6Targets);
constexpr std::array<Requires, 2> kStochastic = since(8, 7, "100a,103a");

// clang-format off
constexpr Form kConvertRows[] = {
    {"mov", ".pred", "d, a", kAny},
    {"mov", ".{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64}", "d{pack}, @a{pack}", kAny},
    {"mov", ".b128", "d{pack}, %a{pack}", since(8, 3, "sm_70+")},

    // Integers and f16, f32, f64. A float result from an integer needs a rounding, an integer result
    // from a float an integer rounding, a narrower float a rounding.
    {"cvt", ".{u8,u16,u32,u64,s8,s16,s32,s64} .{u8,u16,u32,u64,s8,s16,s32,s64}", "d:0~, a:1~", kAny},
    // .sat where the source has values that the destination lacks.
    {"cvt", ".sat .{u8,u16,u32,u64} .{s8,s16,s32,s64}", "d:0~, a:1~", kAny},
    {"cvt", ".sat .u8 .{u16,u32,u64}", "d:0~, a:1~", kAny},
    {"cvt", ".sat .u16 .{u32,u64}", "d:0~, a:1~", kAny},
    {"cvt", ".sat .u32 .u64", "d:0~, a:1~", kAny},
    {"cvt", ".sat .s8 .{s16,s32,s64,u8,u16,u32,u64}", "d:0~, a:1~", kAny},
    {"cvt", ".sat .s16 .{s32,s64,u16,u32,u64}", "d:0~, a:1~", kAny},
    {"cvt", ".sat .s32 .{s64,u32,u64}", "d:0~, a:1~", kAny},
    {"cvt", ".sat .s64 .u64", "d:0~, a:1~", kAny},
    {"cvt", ".<rnd> .sat? .f16 .{u8,u16,u32,u64,s8,s16,s32,s64}", "d:0~, a:1~", kAny},
    {"cvt", ".<rnd> .ftz? .sat? .f32 .{u8,u16,u32,u64,s8,s16,s32,s64}", "d:0~, a:1~", kAny},
    {"cvt", ".<rnd> .sat? .f64 .{u8,u16,u32,u64,s8,s16,s32,s64}", "d:0~, a:1~", kAny},
    {"cvt", ".<irnd> .ftz? .sat? .{u8,u16,u32,u64,s8,s16,s32,s64} .f32", "d:0~, a:1~", kAny},
    {"cvt", ".<irnd> .sat? .{u8,u16,u32,u64,s8,s16,s32,s64} .{f16,f64}", "d:0~, a:1~", kAny},
    {"cvt", ".<irnd>? .sat? .f16 .f16", "d:0~, a:1~", kAny},
    {"cvt", ".<irnd>? .ftz? .sat? .f32 .f32", "d:0~, a:1~", kAny},
    {"cvt", ".<irnd>? .sat? .f64 .f64", "d:0~, a:1~", kAny},
    {"cvt", ".ftz? .sat? .f32 .f16", "d:0~, a:1~", kAny},
    {"cvt", ".sat? .f64 .f16", "d:0~, a:1~", kAny},
    {"cvt", ".ftz? .sat? .f64 .f32", "d:0~, a:1~", kAny},
    {"cvt", ".<rnd> .ftz? .sat? .f16 .f32", "d:0~, a:1~", kAny},
    {"cvt", ".<rnd> .ftz? .sat? .f32 .f64", "d:0~, a:1~", kAny},
    {"cvt", ".<rnd> .sat? .f16 .f64", "d:0~, a:1~", kAny},
    {"cvt", ".{rn,rz} .relu .f16 .f32", "d:0, a:1", kSm80},
    {"cvt", ".{rn,rz} .relu? .{f16x2,bf16x2} .f32", "d:0, a:1, b:1", kSm80},
    {"cvt", ".{rn,rz} .satfinite .f16 .f32", "d:0, a:1", since(8, 1, "sm_53+")},
    {"cvt", ".{rn,rz} .relu .satfinite .f16 .f32", "d:0, a:1", since(8, 1, "sm_80+")},
    {"cvt", ".{rn,rz} .relu? .satfinite .bf16 .f32", "d:0, a:1", since(8, 1, "sm_80+")},
    {"cvt", ".{rn,rz} .relu? .satfinite .{f16x2,bf16x2} .f32", "d:0, a:1, b:1", since(8, 1, "sm_80+")},

    // bf16, tf32.
    {"cvt", ".{rn,rz} .relu? .bf16 .f32", "d:0, a:1", kSm80},
    {"cvt", ".{rm,rp} .bf16 .f32", "d:0, a:1", kSm80},
    {"cvt", ".f32 .bf16", "d:0, a:1", since(7, 1, "sm_80+")},
    {"cvt", ".ftz .f32 .bf16", "d:0, a:1", kSm90},
    {"cvt", ".f64 .bf16", "d:0, a:1", kSm90},
    {"cvt", ".<rnd> .bf16 .{u8,u16,u32,u64,s8,s16,s32,s64}", "d:0, a:1", kSm90},
    {"cvt", ".<rnd> .bf16 .{f16,f64}", "d:0, a:1", kSm90},
    {"cvt", ".<irnd> .{u8,u16,u32,u64,s8,s16,s32,s64} .bf16", "d:0, a:1", kSm90},
    {"cvt", ".<irnd>? .bf16 .bf16", "d:0, a:1", kSm90},
    {"cvt", ".<rnd> .f16 .bf16", "d:0, a:1", kSm90},
    {"cvt", ".rna .tf32 .f32", "d:0, a:1", kSm80},
    {"cvt", ".rna .satfinite .tf32 .f32", "d:0, a:1", since(8, 1, "sm_80+")},
    {"cvt", ".{rn,rz} .relu? .tf32 .f32", "d:0, a:1", kSm90},
    {"cvt", ".{rn,rz} .relu? .satfinite .tf32 .f32", "d:0, a:1", kSm100},

    // fp8.
    {"cvt", ".rn .satfinite .relu? .{e4m3x2,e5m2x2} .f32", "d:0, a:1, b:1", kFp8},
    {"cvt", ".rn .satfinite .relu? .{e4m3x2,e5m2x2} .f16x2", "d:0, a:1", kFp8},
    {"cvt", ".rn .relu? .f16x2 .{e4m3x2,e5m2x2}", "d:0, a:1", kFp8},

    // fp6, fp4, ue8m0 and stochastic rounding (Blackwell).
    {"cvt", ".rn .satfinite .relu? .{e2m3x2,e3m2x2} .f32", "d:0, a:1, b:1", kFp6},
    {"cvt", ".rn .satfinite .relu? .e2m1x2 .f32", "d:b8, a:1, b:1", kFp6},
    {"cvt", ".rn .relu? .f16x2 .{e2m3x2,e3m2x2,e2m1x2}", "d:0, a:1", kFp6},
    {"cvt", ".{rz,rp} .satfinite? .ue8m0x2 .f32", "d:0, a:1, b:1", kFp6},
    {"cvt", ".{rz,rp} .satfinite? .ue8m0x2 .bf16x2", "d:0, a:1", kFp6},
    {"cvt", ".rn .bf16x2 .ue8m0x2", "d:0, a:1", kFp6},
    {"cvt", ".rs .relu? .satfinite? .{f16x2,bf16x2} .f32", "d:0, a:1, b:1, c:b32", kStochastic, Effect::none},
    {"cvt", ".rs .relu? .satfinite .{e4m3x4,e5m2x4,e2m3x4,e3m2x4} .f32", "d:b32, a{4}:f32, b:b32", kStochastic, Effect::none},
    {"cvt", ".rs .relu? .satfinite .e2m1x4 .f32", "d:b16, a{4}:f32, b:b32", kStochastic, Effect::none},

    {"cvt", ".pack .sat .{u16,s16} .s32", "d:b32, a:s32, b:s32", since(6, 5, "sm_72+")},
    {"cvt", ".pack .sat .{u2,s2,u4,s4,u8,s8} .s32 .b32", "d:b32, a:s32, b:s32, c:b32", since(6, 5, "sm_72+")},

    // Addresses.
    {"cvta", ".{const,global,local,param,param::entry,shared,shared::cta,shared::cluster} .{u32,u64}", "d, @a", kAny, Effect::convert_address},
    {"cvta", ".to .{const,global,local,param,param::entry,shared,shared::cta,shared::cluster} .{u32,u64}", "d, a", kAny, Effect::convert_address},
    {"isspacep", ".{const,global,local,shared,shared::cta,shared::cluster,param,param::entry}", "p:pred, a:addr", kAny, Effect::is_space},
    {"mapa", ".{shared::cluster}? .{u32,u64}", "d, @a, b:u32", kSm90, Effect::map_address},
    {"getctarank", ".{shared::cluster}? .{u32,u64}", "d:u32, @a", kSm90, Effect::map_address},
    {"stacksave", ".{u32,u64}", "d", since(7, 3, "sm_52+"), Effect::stack},
    {"stackrestore", ".{u32,u64}", "%a", since(7, 3, "sm_52+"), Effect::stack},
    {"alloca", ".{u32,u64}", "d, a, #b?", since(7, 3, "sm_52+"), Effect::stack},
};
// clang-format on

}  // namespace

std::span<const Form> convert_forms() { return kConvertRows; }

}  // namespace tilewright::ptx::detail
