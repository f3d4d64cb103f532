// SPDX-License-Identifier: Apache-2.0
// Rows of matrix loads, stores and multiply-accumulates (ldmatrix, mma, wmma, wgmma).
#include "ptx/forms.h"

namespace tilewright::ptx::detail {
namespace {

constexpr std::array<Requires, 2> kTuring = since(6, 5, "sm_75+");
constexpr std::array<Requires, 2> kFp8Mma = since(8, 4, "sm_89+");
constexpr std::array<Requires, 2> kFp8MmaF16 = since(8, 7, "sm_89+");
constexpr std::array<Requires, 2> kSparse = since(7, 1, "sm_80+");
constexpr std::array<Requires, 2> kSparseOrdered = since(8, 5, "sm_80+");
constexpr std::array<Requires, 2> kWgmma = since(8, 0, "90a");
constexpr std::array<Requires, 2> kWgmmaMixed = since(8, 4, "90a");
constexpr std::array<Requires, 2> kWgmmaSparse = since(8, 2, "90a");

// clang-format off
constexpr Form kMatrixRows[] = {
    {"ldmatrix", ".sync .aligned .m8n8 .{x1,x2,x4} .trans? .{shared,shared::cta}? .b16", "d{x}:b32, [a]", kTuring, Effect::ldmatrix},
    {"ldmatrix", ".sync .aligned .m16n16 .{x1,x2} .trans .{shared,shared::cta}? .b8", "d{2x}:b32, [a]", since(8, 6, "100f,110f,120f"), Effect::none},
    {"ldmatrix", ".sync .aligned .m16n16 .{x1,x2} .trans .{shared,shared::cta}? .b8x16 .{b6x16_p32,b4x16_p64}", "d{2x}:b32, [a]", since(8, 6, "100f,110f,120f"), Effect::none},
    {"ldmatrix", ".sync .aligned .m8n16 .{x1,x2,x4} .{shared,shared::cta}? .b8x16 .{b6x16_p32,b4x16_p64}", "d{x}:b32, [a]", since(8, 6, "100f,110f,120f"), Effect::none},
    {"stmatrix", ".sync .aligned .m8n8 .{x1,x2,x4} .trans? .{shared,shared::cta}? .b16", "[a], b{x}:b32", kSm90, Effect::stmatrix},
    {"stmatrix", ".sync .aligned .m16n8 .{x1,x2,x4} .trans .{shared,shared::cta}? .b8", "[a], b{x}:b32", since(8, 6, "100f,110f,120f"), Effect::none},
    {"movmatrix", ".sync .aligned .m8n8 .trans .b16", "d:b32, %a:b32", since(7, 8, "sm_75+"), Effect::movmatrix},

    // mma: d, a, b, c with the registers of one lane.
    {"mma", ".sync .aligned .m8n8k4 .{row,col} .{row,col} .f16 .f16 .f16 .f16", "d{4}:b32, a{2}:b32, b{2}:b32, c{4}:b32", since(6, 4, "sm_70+"), Effect::none},
    {"mma", ".sync .aligned .m8n8k4 .{row,col} .{row,col} .f32 .f16 .f16 .f16", "d{8}:f32, a{2}:b32, b{2}:b32, c{4}:b32", since(6, 4, "sm_70+"), Effect::none},
    {"mma", ".sync .aligned .m8n8k4 .{row,col} .{row,col} .f32 .f16 .f16 .f32", "d{8}:f32, a{2}:b32, b{2}:b32, c{8}:f32", since(6, 4, "sm_70+"), Effect::none},
    {"mma", ".sync .aligned .m16n8k8 .row .col .f16 .f16 .f16 .f16", "d{2}:b32, a{2}:b32, b{1}:b32, c{2}:b32", kTuring, Effect::mma},
    {"mma", ".sync .aligned .m16n8k8 .row .col .f32 .f16 .f16 .f32", "d{4}:f32, a{2}:b32, b{1}:b32, c{4}:f32", kTuring, Effect::mma},
    {"mma", ".sync .aligned .m16n8k16 .row .col .f16 .f16 .f16 .f16", "d{2}:b32, a{4}:b32, b{2}:b32, c{2}:b32", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m16n8k16 .row .col .f32 .f16 .f16 .f32", "d{4}:f32, a{4}:b32, b{2}:b32, c{4}:f32", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m16n8k8 .row .col .f32 .bf16 .bf16 .f32", "d{4}:f32, a{2}:b32, b{1}:b32, c{4}:f32", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m16n8k16 .row .col .f32 .bf16 .bf16 .f32", "d{4}:f32, a{4}:b32, b{2}:b32, c{4}:f32", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m16n8k4 .row .col .f32 .tf32 .tf32 .f32", "d{4}:f32, a{2}:b32, b{1}:b32, c{4}:f32", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m16n8k8 .row .col .f32 .tf32 .tf32 .f32", "d{4}:f32, a{4}:b32, b{2}:b32, c{4}:f32", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m8n8k4 .row .col .f64 .f64 .f64 .f64", "d{2}:f64, a{1}:f64, b{1}:f64, c{2}:f64", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m8n8k4 .row .col .<rnd> .f64 .f64 .f64 .f64", "d{2}:f64, a{1}:f64, b{1}:f64, c{2}:f64", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m16n8k4 .row .col .<rnd>? .f64 .f64 .f64 .f64", "d{4}:f64, a{2}:f64, b{1}:f64, c{4}:f64", kSm90, Effect::mma},
    {"mma", ".sync .aligned .m16n8k8 .row .col .<rnd>? .f64 .f64 .f64 .f64", "d{4}:f64, a{4}:f64, b{2}:f64, c{4}:f64", kSm90, Effect::mma},
    {"mma", ".sync .aligned .m16n8k16 .row .col .<rnd>? .f64 .f64 .f64 .f64", "d{4}:f64, a{8}:f64, b{4}:f64, c{4}:f64", kSm90, Effect::mma},
    {"mma", ".sync .aligned .m8n8k16 .row .col .satfinite? .s32 .{u8,s8} .{u8,s8} .s32", "d{2}:s32, a{1}:b32, b{1}:b32, c{2}:s32", kTuring, Effect::mma},
    {"mma", ".sync .aligned .m16n8k16 .row .col .satfinite? .s32 .{u8,s8} .{u8,s8} .s32", "d{4}:s32, a{2}:b32, b{1}:b32, c{4}:s32", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m16n8k32 .row .col .satfinite? .s32 .{u8,s8} .{u8,s8} .s32", "d{4}:s32, a{4}:b32, b{2}:b32, c{4}:s32", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m8n8k32 .row .col .satfinite? .s32 .{u4,s4} .{u4,s4} .s32", "d{2}:s32, a{1}:b32, b{1}:b32, c{2}:s32", kTuring, Effect::mma},
    {"mma", ".sync .aligned .m16n8k32 .row .col .satfinite? .s32 .{u4,s4} .{u4,s4} .s32", "d{4}:s32, a{2}:b32, b{1}:b32, c{4}:s32", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m16n8k64 .row .col .satfinite? .s32 .{u4,s4} .{u4,s4} .s32", "d{4}:s32, a{4}:b32, b{2}:b32, c{4}:s32", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m8n8k128 .row .col .s32 .b1 .b1 .s32 .xor .popc", "d{2}:s32, a{1}:b32, b{1}:b32, c{2}:s32", since(7, 0, "sm_75+"), Effect::mma},
    {"mma", ".sync .aligned .m8n8k128 .row .col .s32 .b1 .b1 .s32 .and .popc", "d{2}:s32, a{1}:b32, b{1}:b32, c{2}:s32", kSparse, Effect::mma},
    {"mma", ".sync .aligned .m16n8k128 .row .col .s32 .b1 .b1 .s32 .xor .popc", "d{4}:s32, a{2}:b32, b{1}:b32, c{4}:s32", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m16n8k128 .row .col .s32 .b1 .b1 .s32 .and .popc", "d{4}:s32, a{2}:b32, b{1}:b32, c{4}:s32", kSparse, Effect::mma},
    {"mma", ".sync .aligned .m16n8k256 .row .col .s32 .b1 .b1 .s32 .xor .popc", "d{4}:s32, a{4}:b32, b{2}:b32, c{4}:s32", kSm80, Effect::mma},
    {"mma", ".sync .aligned .m16n8k256 .row .col .s32 .b1 .b1 .s32 .and .popc", "d{4}:s32, a{4}:b32, b{2}:b32, c{4}:s32", kSparse, Effect::mma},
    {"mma", ".sync .aligned .m16n8k32 .row .col .f32 .{e4m3,e5m2} .{e4m3,e5m2} .f32", "d{4}:f32, a{4}:b32, b{2}:b32, c{4}:f32", kFp8Mma, Effect::mma},
    {"mma", ".sync .aligned .m16n8k16 .row .col .f32 .{e4m3,e5m2} .{e4m3,e5m2} .f32", "d{4}:f32, a{2}:b32, b{1}:b32, c{4}:f32", kFp8MmaF16, Effect::mma},
    {"mma", ".sync .aligned .m16n8k32 .row .col .f16 .{e4m3,e5m2} .{e4m3,e5m2} .f16", "d{2}:b32, a{4}:b32, b{2}:b32, c{2}:b32", kFp8MmaF16, Effect::mma},
    {"mma", ".sync .aligned .m16n8k16 .row .col .f16 .{e4m3,e5m2} .{e4m3,e5m2} .f16", "d{2}:b32, a{2}:b32, b{1}:b32, c{2}:b32", kFp8MmaF16, Effect::mma},

    // mma.sp: d, a, b, c, metadata, selector.
    {"mma", ".sp .sync .aligned .m16n8k16 .row .col .f16 .f16 .f16 .f16", "d{2}:b32, a{2}:b32, b{2}:b32, c{2}:b32, e:b32, #f=0..3", kSparse, Effect::mma},
    {"mma", ".sp .sync .aligned .m16n8k16 .row .col .f32 .f16 .f16 .f32", "d{4}:f32, a{2}:b32, b{2}:b32, c{4}:f32, e:b32, #f=0..3", kSparse, Effect::mma},
    {"mma", ".sp .sync .aligned .m16n8k16 .row .col .f32 .bf16 .bf16 .f32", "d{4}:f32, a{2}:b32, b{2}:b32, c{4}:f32, e:b32, #f=0..3", kSparse, Effect::mma},
    {"mma", ".sp .sync .aligned .m16n8k32 .row .col .f16 .f16 .f16 .f16", "d{2}:b32, a{4}:b32, b{4}:b32, c{2}:b32, e:b32, #f=0..1", kSparse, Effect::mma},
    {"mma", ".sp .sync .aligned .m16n8k32 .row .col .f32 .f16 .f16 .f32", "d{4}:f32, a{4}:b32, b{4}:b32, c{4}:f32, e:b32, #f=0..1", kSparse, Effect::mma},
    {"mma", ".sp .sync .aligned .m16n8k32 .row .col .f32 .bf16 .bf16 .f32", "d{4}:f32, a{4}:b32, b{4}:b32, c{4}:f32, e:b32, #f=0..1", kSparse, Effect::mma},
    {"mma", ".sp .sync .aligned .m16n8k8 .row .col .f32 .tf32 .tf32 .f32", "d{4}:f32, a{2}:b32, b{2}:b32, c{4}:f32, e:b32, #f=0..3", kSparse, Effect::mma},
    {"mma", ".sp .sync .aligned .m16n8k16 .row .col .f32 .tf32 .tf32 .f32", "d{4}:f32, a{4}:b32, b{4}:b32, c{4}:f32, e:b32, #f=0..1", kSparse, Effect::mma},
    {"mma", ".sp .sync .aligned .m16n8k32 .row .col .satfinite? .s32 .{u8,s8} .{u8,s8} .s32", "d{4}:s32, a{2}:b32, b{2}:b32, c{4}:s32, e:b32, #f=0..1", kSparse, Effect::mma},
    {"mma", ".sp .sync .aligned .m16n8k64 .row .col .satfinite? .s32 .{u8,s8} .{u8,s8} .s32", "d{4}:s32, a{4}:b32, b{4}:b32, c{4}:s32, e:b32, #f=0..0", kSparse, Effect::mma},
    {"mma", ".sp .sync .aligned .m16n8k64 .row .col .satfinite? .s32 .{u4,s4} .{u4,s4} .s32", "d{4}:s32, a{2}:b32, b{2}:b32, c{4}:s32, e:b32, #f=0..1", kSparse, Effect::mma},
    {"mma", ".sp .sync .aligned .m16n8k128 .row .col .satfinite? .s32 .{u4,s4} .{u4,s4} .s32", "d{4}:s32, a{4}:b32, b{4}:b32, c{4}:s32, e:b32, #f=0..0", kSparse, Effect::mma},
    {"mma", ".sp .sync .aligned .m16n8k64 .row .col .f32 .{e4m3,e5m2} .{e4m3,e5m2} .f32", "d{4}:f32, a{4}:b32, b{4}:b32, c{4}:f32, e:b32, #f=0..0", kFp8Mma, Effect::mma},
    {"mma", ".sp::ordered_metadata .sync .aligned .m16n8k16 .row .col .f16 .f16 .f16 .f16", "d{2}:b32, a{2}:b32, b{2}:b32, c{2}:b32, e:b32, #f=0..3", kSparseOrdered, Effect::mma},
    {"mma", ".sp::ordered_metadata .sync .aligned .m16n8k16 .row .col .f32 .f16 .f16 .f32", "d{4}:f32, a{2}:b32, b{2}:b32, c{4}:f32, e:b32, #f=0..3", kSparseOrdered, Effect::mma},
    {"mma", ".sp::ordered_metadata .sync .aligned .m16n8k16 .row .col .f32 .bf16 .bf16 .f32", "d{4}:f32, a{2}:b32, b{2}:b32, c{4}:f32, e:b32, #f=0..3", kSparseOrdered, Effect::mma},
    {"mma", ".sp::ordered_metadata .sync .aligned .m16n8k32 .row .col .f16 .f16 .f16 .f16", "d{2}:b32, a{4}:b32, b{4}:b32, c{2}:b32, e:b32, #f=0..1", kSparseOrdered, Effect::mma},
    {"mma", ".sp::ordered_metadata .sync .aligned .m16n8k32 .row .col .f32 .f16 .f16 .f32", "d{4}:f32, a{4}:b32, b{4}:b32, c{4}:f32, e:b32, #f=0..1", kSparseOrdered, Effect::mma},
    {"mma", ".sp::ordered_metadata .sync .aligned .m16n8k32 .row .col .f32 .bf16 .bf16 .f32", "d{4}:f32, a{4}:b32, b{4}:b32, c{4}:f32, e:b32, #f=0..1", kSparseOrdered, Effect::mma},
    {"mma", ".sp::ordered_metadata .sync .aligned .m16n8k8 .row .col .f32 .tf32 .tf32 .f32", "d{4}:f32, a{2}:b32, b{2}:b32, c{4}:f32, e:b32, #f=0..3", kSparseOrdered, Effect::mma},
    {"mma", ".sp::ordered_metadata .sync .aligned .m16n8k16 .row .col .f32 .tf32 .tf32 .f32", "d{4}:f32, a{4}:b32, b{4}:b32, c{4}:f32, e:b32, #f=0..1", kSparseOrdered, Effect::mma},
    {"mma", ".sp::ordered_metadata .sync .aligned .m16n8k32 .row .col .satfinite? .s32 .{u8,s8} .{u8,s8} .s32", "d{4}:s32, a{2}:b32, b{2}:b32, c{4}:s32, e:b32, #f=0..1", kSparseOrdered, Effect::mma},
    {"mma", ".sp::ordered_metadata .sync .aligned .m16n8k64 .row .col .satfinite? .s32 .{u8,s8} .{u8,s8} .s32", "d{4}:s32, a{4}:b32, b{4}:b32, c{4}:s32, e:b32, #f=0..0", kSparseOrdered, Effect::mma},
    {"mma", ".sp::ordered_metadata .sync .aligned .m16n8k64 .row .col .satfinite? .s32 .{u4,s4} .{u4,s4} .s32", "d{4}:s32, a{2}:b32, b{2}:b32, c{4}:s32, e:b32, #f=0..1", kSparseOrdered, Effect::mma},
    {"mma", ".sp::ordered_metadata .sync .aligned .m16n8k128 .row .col .satfinite? .s32 .{u4,s4} .{u4,s4} .s32", "d{4}:s32, a{4}:b32, b{4}:b32, c{4}:s32, e:b32, #f=0..0", kSparseOrdered, Effect::mma},
    {"mma", ".sp::ordered_metadata .sync .aligned .m16n8k64 .row .col .f32 .{e4m3,e5m2} .{e4m3,e5m2} .f32", "d{4}:f32, a{4}:b32, b{4}:b32, c{4}:f32, e:b32, #f=0..0", since(8, 5, "sm_89+"), Effect::mma},

    // wmma.
    {"wmma", ".load .{a,b} .sync .aligned .{row,col} .{m16n16k16,m8n32k16,m32n8k16} .{global,shared,shared::cta}? .f16", "d{8}:b32, [p], s:u32?", since(6, 0, "sm_70+"), Effect::wmma},
    {"wmma", ".load .c .sync .aligned .{row,col} .{m16n16k16,m8n32k16,m32n8k16} .{global,shared,shared::cta}? .f16", "d{4}:b32, [p], s:u32?", since(6, 0, "sm_70+"), Effect::wmma},
    {"wmma", ".load .c .sync .aligned .{row,col} .{m16n16k16,m8n32k16,m32n8k16} .{global,shared,shared::cta}? .f32", "d{8}:f32, [p], s:u32?", since(6, 0, "sm_70+"), Effect::wmma},
    {"wmma", ".load .{a,b} .sync .aligned .{row,col} .m16n16k16 .{global,shared,shared::cta}? .bf16", "d{4}:b32, [p], s:u32?", kSm80, Effect::wmma},
    {"wmma", ".load .{a,b} .sync .aligned .{row,col} .m16n16k16 .{global,shared,shared::cta}? .{u8,s8}", "d{2}:b32, [p], s:u32?", since(6, 3, "sm_72+"), Effect::wmma},
    {"wmma", ".load .a .sync .aligned .{row,col} .m8n32k16 .{global,shared,shared::cta}? .bf16", "d{2}:b32, [p], s:u32?", kSm80, Effect::wmma},
    {"wmma", ".load .a .sync .aligned .{row,col} .m8n32k16 .{global,shared,shared::cta}? .{u8,s8}", "d{1}:b32, [p], s:u32?", since(6, 3, "sm_72+"), Effect::wmma},
    {"wmma", ".load .b .sync .aligned .{row,col} .m8n32k16 .{global,shared,shared::cta}? .bf16", "d{8}:b32, [p], s:u32?", kSm80, Effect::wmma},
    {"wmma", ".load .b .sync .aligned .{row,col} .m8n32k16 .{global,shared,shared::cta}? .{u8,s8}", "d{4}:b32, [p], s:u32?", since(6, 3, "sm_72+"), Effect::wmma},
    {"wmma", ".load .a .sync .aligned .{row,col} .m32n8k16 .{global,shared,shared::cta}? .bf16", "d{8}:b32, [p], s:u32?", kSm80, Effect::wmma},
    {"wmma", ".load .a .sync .aligned .{row,col} .m32n8k16 .{global,shared,shared::cta}? .{u8,s8}", "d{4}:b32, [p], s:u32?", since(6, 3, "sm_72+"), Effect::wmma},
    {"wmma", ".load .b .sync .aligned .{row,col} .m32n8k16 .{global,shared,shared::cta}? .bf16", "d{2}:b32, [p], s:u32?", kSm80, Effect::wmma},
    {"wmma", ".load .b .sync .aligned .{row,col} .m32n8k16 .{global,shared,shared::cta}? .{u8,s8}", "d{1}:b32, [p], s:u32?", since(6, 3, "sm_72+"), Effect::wmma},
    {"wmma", ".load .c .sync .aligned .{row,col} .{m16n16k16,m8n32k16,m32n8k16} .{global,shared,shared::cta}? .s32", "d{8}:b32, [p], s:u32?", since(6, 3, "sm_72+"), Effect::wmma},
    {"wmma", ".load .{a,b} .sync .aligned .{row,col} .m16n16k8 .{global,shared,shared::cta}? .tf32", "d{4}:b32, [p], s:u32?", kSm80, Effect::wmma},
    {"wmma", ".load .c .sync .aligned .{row,col} .m16n16k8 .{global,shared,shared::cta}? .f32", "d{8}:f32, [p], s:u32?", kSm80, Effect::wmma},
    {"wmma", ".load .{a,b} .sync .aligned .{row,col} .m8n8k4 .{global,shared,shared::cta}? .f64", "d{1}:f64, [p], s:u32?", kSm80, Effect::wmma},
    {"wmma", ".load .c .sync .aligned .{row,col} .m8n8k4 .{global,shared,shared::cta}? .f64", "d{2}:f64, [p], s:u32?", kSm80, Effect::wmma},
    {"wmma", ".load .a .sync .aligned .row .m8n8k32 .{global,shared,shared::cta}? .{u4,s4}", "d{1}:b32, [p], s:u32?", since(6, 3, "sm_75+"), Effect::wmma},
    {"wmma", ".load .b .sync .aligned .col .m8n8k32 .{global,shared,shared::cta}? .{u4,s4}", "d{1}:b32, [p], s:u32?", since(6, 3, "sm_75+"), Effect::wmma},
    {"wmma", ".load .a .sync .aligned .row .m8n8k128 .{global,shared,shared::cta}? .b1", "d{1}:b32, [p], s:u32?", since(6, 3, "sm_75+"), Effect::wmma},
    {"wmma", ".load .b .sync .aligned .col .m8n8k128 .{global,shared,shared::cta}? .b1", "d{1}:b32, [p], s:u32?", since(6, 3, "sm_75+"), Effect::wmma},
    {"wmma", ".load .c .sync .aligned .{row,col} .{m8n8k32,m8n8k128} .{global,shared,shared::cta}? .s32", "d{2}:b32, [p], s:u32?", since(6, 3, "sm_75+"), Effect::wmma},

    {"wmma", ".store .d .sync .aligned .{row,col} .{m16n16k16,m8n32k16,m32n8k16} .{global,shared,shared::cta}? .f16", "[p], a{4}:b32, s:u32?", since(6, 0, "sm_70+"), Effect::wmma},
    {"wmma", ".store .d .sync .aligned .{row,col} .{m16n16k16,m8n32k16,m32n8k16} .{global,shared,shared::cta}? .f32", "[p], a{8}:f32, s:u32?", since(6, 0, "sm_70+"), Effect::wmma},
    {"wmma", ".store .d .sync .aligned .{row,col} .{m16n16k16,m8n32k16,m32n8k16} .{global,shared,shared::cta}? .s32", "[p], a{8}:b32, s:u32?", since(6, 3, "sm_72+"), Effect::wmma},
    {"wmma", ".store .d .sync .aligned .{row,col} .m16n16k8 .{global,shared,shared::cta}? .f32", "[p], a{8}:f32, s:u32?", kSm80, Effect::wmma},
    {"wmma", ".store .d .sync .aligned .{row,col} .m8n8k4 .{global,shared,shared::cta}? .f64", "[p], a{2}:f64, s:u32?", kSm80, Effect::wmma},
    {"wmma", ".store .d .sync .aligned .{row,col} .{m8n8k32,m8n8k128} .{global,shared,shared::cta}? .s32", "[p], a{2}:b32, s:u32?", since(6, 3, "sm_75+"), Effect::wmma},

    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .{m16n16k16,m8n32k16,m32n8k16} .f16 .f16", "d{4}:b32, a{8}:b32, b{8}:b32, c{4}:b32", since(6, 0, "sm_70+"), Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .{m16n16k16,m8n32k16,m32n8k16} .f32 .f16", "d{8}:f32, a{8}:b32, b{8}:b32, c{4}:b32", since(6, 0, "sm_70+"), Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .{m16n16k16,m8n32k16,m32n8k16} .f16 .f32", "d{4}:b32, a{8}:b32, b{8}:b32, c{8}:f32", since(6, 0, "sm_70+"), Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .{m16n16k16,m8n32k16,m32n8k16} .f32 .f32", "d{8}:f32, a{8}:b32, b{8}:b32, c{8}:f32", since(6, 0, "sm_70+"), Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .m16n16k16 .f32 .bf16 .bf16 .f32", "d{8}:f32, a{4}:b32, b{4}:b32, c{8}:f32", kSm80, Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .m8n32k16 .f32 .bf16 .bf16 .f32", "d{8}:f32, a{2}:b32, b{8}:b32, c{8}:f32", kSm80, Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .m32n8k16 .f32 .bf16 .bf16 .f32", "d{8}:f32, a{8}:b32, b{2}:b32, c{8}:f32", kSm80, Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .m16n16k8 .f32 .tf32 .tf32 .f32", "d{8}:f32, a{4}:b32, b{4}:b32, c{8}:f32", kSm80, Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .m8n8k4 .<rnd>? .f64 .f64 .f64 .f64", "d{2}:f64, a{1}:f64, b{1}:f64, c{2}:f64", kSm80, Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .m16n16k16 .s32 .u8 .u8 .s32 .satfinite?", "d{8}:s32, a{2}:b32, b{2}:b32, c{8}:s32", since(6, 3, "sm_72+"), Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .m16n16k16 .s32 .s8 .s8 .s32 .satfinite?", "d{8}:s32, a{2}:b32, b{2}:b32, c{8}:s32", since(6, 3, "sm_72+"), Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .m8n32k16 .s32 .u8 .u8 .s32 .satfinite?", "d{8}:s32, a{1}:b32, b{4}:b32, c{8}:s32", since(6, 3, "sm_72+"), Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .m8n32k16 .s32 .s8 .s8 .s32 .satfinite?", "d{8}:s32, a{1}:b32, b{4}:b32, c{8}:s32", since(6, 3, "sm_72+"), Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .m32n8k16 .s32 .u8 .u8 .s32 .satfinite?", "d{8}:s32, a{4}:b32, b{1}:b32, c{8}:s32", since(6, 3, "sm_72+"), Effect::wmma},
    {"wmma", ".mma .sync .aligned .{row,col} .{row,col} .m32n8k16 .s32 .s8 .s8 .s32 .satfinite?", "d{8}:s32, a{4}:b32, b{1}:b32, c{8}:s32", since(6, 3, "sm_72+"), Effect::wmma},
    {"wmma", ".mma .sync .aligned .row .col .m8n8k32 .s32 .u4 .u4 .s32 .satfinite?", "d{2}:s32, a{1}:b32, b{1}:b32, c{2}:s32", since(6, 3, "sm_75+"), Effect::wmma},
    {"wmma", ".mma .sync .aligned .row .col .m8n8k32 .s32 .s4 .s4 .s32 .satfinite?", "d{2}:s32, a{1}:b32, b{1}:b32, c{2}:s32", since(6, 3, "sm_75+"), Effect::wmma},
    {"wmma", ".mma .xor .popc .sync .aligned .row .col .m8n8k128 .s32 .b1 .b1 .s32", "d{2}:s32, a{1}:b32, b{1}:b32, c{2}:s32", since(6, 3, "sm_75+"), Effect::wmma},
    {"wmma", ".mma .and .popc .sync .aligned .row .col .m8n8k128 .s32 .b1 .b1 .s32", "d{2}:s32, a{1}:b32, b{1}:b32, c{2}:s32", kSparse, Effect::wmma},

    // wgmma: a from a descriptor (b64) or from four registers.
    {"wgmma", ".fence .sync .aligned", "", kWgmma, Effect::wgmma_sync},
    {"wgmma", ".commit_group .sync .aligned", "", kWgmma, Effect::wgmma_sync},
    {"wgmma", ".wait_group .sync .aligned", "#a=0..7", kWgmma, Effect::wgmma_sync},
    {"wgmma", ".mma_async .sync .aligned .<wgmma16> .f16 .f16 .f16", "d{n/4}:b32, desc{4}:b32, %b:b64, s:pred, #i=-1|1, #j=-1|1, #k=0..1, #l=0..1?desc", kWgmma, Effect::wgmma},
    {"wgmma", ".mma_async .sync .aligned .<wgmma16> .f32 .f16 .f16", "d{n/2}:f32, desc{4}:b32, %b:b64, s:pred, #i=-1|1, #j=-1|1, #k=0..1, #l=0..1?desc", kWgmma, Effect::wgmma},
    {"wgmma", ".mma_async .sync .aligned .<wgmma16> .f32 .bf16 .bf16", "d{n/2}:f32, desc{4}:b32, %b:b64, s:pred, #i=-1|1, #j=-1|1, #k=0..1, #l=0..1?desc", kWgmma, Effect::wgmma},
    {"wgmma", ".mma_async .sync .aligned .<wgmma8> .f32 .tf32 .tf32", "d{n/2}:f32, desc{4}:b32, %b:b64, s:pred, #i=-1|1, #j=-1|1", kWgmma, Effect::wgmma},
    {"wgmma", ".mma_async .sync .aligned .<wgmma32> .f16 .{e4m3,e5m2} .{e4m3,e5m2}", "d{n/4}:b32, desc{4}:b32, %b:b64, s:pred, #i=-1|1, #j=-1|1", kWgmma, Effect::wgmma},
    {"wgmma", ".mma_async .sync .aligned .<wgmma32> .f32 .{e4m3,e5m2} .{e4m3,e5m2}", "d{n/2}:f32, desc{4}:b32, %b:b64, s:pred, #i=-1|1, #j=-1|1", kWgmma, Effect::wgmma},
    {"wgmma", ".mma_async .sync .aligned .<wgmma32i> .satfinite? .s32 .u8 .u8", "d{n/2}:s32, desc{4}:b32, %b:b64, s:pred", kWgmma, Effect::wgmma},
    {"wgmma", ".mma_async .sync .aligned .<wgmma32i> .satfinite? .s32 .s8 .s8", "d{n/2}:s32, desc{4}:b32, %b:b64, s:pred", kWgmma, Effect::wgmma},
    {"wgmma", ".mma_async .sync .aligned .<wgmma32i> .satfinite? .s32 .u8 .s8", "d{n/2}:s32, desc{4}:b32, %b:b64, s:pred", kWgmmaMixed, Effect::wgmma},
    {"wgmma", ".mma_async .sync .aligned .<wgmma32i> .satfinite? .s32 .s8 .u8", "d{n/2}:s32, desc{4}:b32, %b:b64, s:pred", kWgmmaMixed, Effect::wgmma},
    {"wgmma", ".mma_async .sync .aligned .<wgmma256> .s32 .b1 .b1 .and .popc", "d{n/2}:s32, desc{4}:b32, %b:b64, s:pred", kWgmma, Effect::wgmma},
    {"wgmma", ".mma_async .sp .sync .aligned .<wgmma32> .f16 .f16 .f16", "d{n/4}:b32, desc{4}:b32, %b:b64, e:b32, #f=0..3, s:pred, #i=-1|1, #j=-1|1, #k=0..1, #l=0..1?desc", kWgmmaSparse, Effect::wgmma},
    {"wgmma", ".mma_async .sp .sync .aligned .<wgmma32> .f32 .f16 .f16", "d{n/2}:f32, desc{4}:b32, %b:b64, e:b32, #f=0..3, s:pred, #i=-1|1, #j=-1|1, #k=0..1, #l=0..1?desc", kWgmmaSparse, Effect::wgmma},
    {"wgmma", ".mma_async .sp .sync .aligned .<wgmma32> .f32 .bf16 .bf16", "d{n/2}:f32, desc{4}:b32, %b:b64, e:b32, #f=0..3, s:pred, #i=-1|1, #j=-1|1, #k=0..1, #l=0..1?desc", kWgmmaSparse, Effect::wgmma},
    {"wgmma", ".mma_async .sp .sync .aligned .<wgmma16> .f32 .tf32 .tf32", "d{n/2}:f32, desc{4}:b32, %b:b64, e:b32, #f=0..3, s:pred, #i=-1|1, #j=-1|1", kWgmmaSparse, Effect::wgmma},
    {"wgmma", ".mma_async .sp .sync .aligned .<wgmma64> .f16 .{e4m3,e5m2} .{e4m3,e5m2}", "d{n/4}:b32, desc{4}:b32, %b:b64, e:b32, #f=0..3, s:pred, #i=-1|1, #j=-1|1", kWgmmaSparse, Effect::wgmma},
    {"wgmma", ".mma_async .sp .sync .aligned .<wgmma64> .f32 .{e4m3,e5m2} .{e4m3,e5m2}", "d{n/2}:f32, desc{4}:b32, %b:b64, e:b32, #f=0..3, s:pred, #i=-1|1, #j=-1|1", kWgmmaSparse, Effect::wgmma},
    {"wgmma", ".mma_async .sp .sync .aligned .<wgmma64i> .satfinite? .s32 .u8 .u8", "d{n/2}:s32, desc{4}:b32, %b:b64, e:b32, #f=0..3, s:pred", kWgmmaSparse, Effect::wgmma},
    {"wgmma", ".mma_async .sp .sync .aligned .<wgmma64i> .satfinite? .s32 .s8 .s8", "d{n/2}:s32, desc{4}:b32, %b:b64, e:b32, #f=0..3, s:pred", kWgmmaSparse, Effect::wgmma},
    {"wgmma", ".mma_async .sp .sync .aligned .<wgmma64i> .satfinite? .s32 .u8 .s8", "d{n/2}:s32, desc{4}:b32, %b:b64, e:b32, #f=0..3, s:pred", kWgmmaMixed, Effect::wgmma},
    {"wgmma", ".mma_async .sp .sync .aligned .<wgmma64i> .satfinite? .s32 .s8 .u8", "d{n/2}:s32, desc{4}:b32, %b:b64, e:b32, #f=0..3, s:pred", kWgmmaMixed, Effect::wgmma},
};
// clang-format on

}  // namespace

std::span<const Form> matrix_forms() { return kMatrixRows; }

}  // namespace tilewright::ptx::detail
