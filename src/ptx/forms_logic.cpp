// SPDX-License-Identifier: Apache-2.0
// Rows of comparison, selection, logic and shifts.
#include "ptx/forms.h"

namespace tilewright::ptx::detail {
namespace {

// clang-format off
constexpr Form kLogicRows[] = {
    {"and", ".pred", "d, !a, !b", kAny},
    {"or", ".pred", "d, !a, !b", kAny},
    {"xor", ".pred", "d, !a, !b", kAny},
    {"not", ".pred", "d, !a", kAny},
    {"and", ".{b16,b32,b64}", "d, a, b", kAny},
    {"or", ".{b16,b32,b64}", "d, a, b", kAny},
    {"xor", ".{b16,b32,b64}", "d, a, b", kAny},
    {"not", ".{b16,b32,b64}", "d, a", kAny},
    {"cnot", ".{b16,b32,b64}", "d, a", kAny},
    {"lop3", ".b32", "d, a, b, c, #e=0..255", since(4, 3, "sm_50+")},
    {"lop3", ".{or,and} .b32", "d_|p:pred, a, b, c, #e=0..255, !g:pred", since(8, 2, "sm_70+")},
    {"shf", ".{l,r} .{clamp,wrap} .b32", "d, a, b, c:u32", kAny},
    {"shl", ".{b16,b32,b64}", "d, a, b:u32", kAny},
    {"shr", ".{b16,b32,b64,u16,u32,u64,s16,s32,s64}", "d, a, b:u32", kAny},
    {"prmt", ".b32 .{f4e,b4e,rc8,ecl,ecr,rc16}?", "d, a, b, c:u32", kAny},

    {"setp", ".{eq,ne} .{b16,b32,b64}", "p:pred_|q:pred_?, a, b", kAny},
    {"setp", ".<ucmp> .{u16,u32,u64}", "p:pred_|q:pred_?, a, b", kAny},
    {"setp", ".<scmp> .{s16,s32,s64}", "p:pred_|q:pred_?, a, b", kAny},
    {"setp", ".{eq,ne} .<bool> .{b16,b32,b64}", "p:pred_|q:pred_?, a, b, !c:pred", kAny},
    {"setp", ".<ucmp> .<bool> .{u16,u32,u64}", "p:pred_|q:pred_?, a, b, !c:pred", kAny},
    {"setp", ".<scmp> .<bool> .{s16,s32,s64}", "p:pred_|q:pred_?, a, b, !c:pred", kAny},
    {"setp", ".<fcmp> .ftz? .f32", "p:pred_|q:pred_?, a, b", kAny},
    {"setp", ".<fcmp> .<bool> .ftz? .f32", "p:pred_|q:pred_?, a, b, !c:pred", kAny},
    {"setp", ".<fcmp> .f64", "p:pred_|q:pred_?, a, b", kAny},
    {"setp", ".<fcmp> .<bool> .f64", "p:pred_|q:pred_?, a, b, !c:pred", kAny},
    {"setp", ".<fcmp> .ftz? .f16", "p:pred, %a, %b", since(4, 2, "sm_53+")},
    {"setp", ".<fcmp> .<bool> .ftz? .f16", "p:pred, %a, %b, !c:pred", since(4, 2, "sm_53+")},
    {"setp", ".<fcmp> .ftz? .f16x2", "p:pred_|q:pred_, %a, %b", since(4, 2, "sm_53+")},
    {"setp", ".<fcmp> .<bool> .ftz? .f16x2", "p:pred_|q:pred_, %a, %b, !c:pred", since(4, 2, "sm_53+")},
    {"setp", ".<fcmp> .bf16", "p:pred, %a, %b", kSm90},
    {"setp", ".<fcmp> .<bool> .bf16", "p:pred, %a, %b, !c:pred", kSm90},
    {"setp", ".<fcmp> .bf16x2", "p:pred_|q:pred_, %a, %b", kSm90},
    {"setp", ".<fcmp> .<bool> .bf16x2", "p:pred_|q:pred_, %a, %b, !c:pred", kSm90},

    {"set", ".{eq,ne} .{u32,s32,f32} .{b16,b32,b64}", "d:0, a:1, b:1", kAny},
    {"set", ".<ucmp> .{u32,s32,f32} .{u16,u32,u64}", "d:0, a:1, b:1", kAny},
    {"set", ".<scmp> .{u32,s32,f32} .{s16,s32,s64}", "d:0, a:1, b:1", kAny},
    {"set", ".{eq,ne} .<bool> .{u32,s32,f32} .{b16,b32,b64}", "d:0, a:1, b:1, !c:pred", kAny},
    {"set", ".<ucmp> .<bool> .{u32,s32,f32} .{u16,u32,u64}", "d:0, a:1, b:1, !c:pred", kAny},
    {"set", ".<scmp> .<bool> .{u32,s32,f32} .{s16,s32,s64}", "d:0, a:1, b:1, !c:pred", kAny},
    {"set", ".<fcmp> .ftz? .{u32,s32,f32} .f32", "d:0, a:1, b:1", kAny},
    {"set", ".<fcmp> .<bool> .ftz? .{u32,s32,f32} .f32", "d:0, a:1, b:1, !c:pred", kAny},
    {"set", ".<fcmp> .{u32,s32,f32} .f64", "d:0, a:1, b:1", kAny},
    {"set", ".<fcmp> .<bool> .{u32,s32,f32} .f64", "d:0, a:1, b:1, !c:pred", kAny},
    {"set", ".<fcmp> .ftz? .f16 .f16", "d:0, %a:1, %b:1", since(4, 2, "sm_53+")},
    {"set", ".<fcmp> .ftz? .{u16,s16,u32,s32} .f16", "d:0, %a:1, %b:1", since(6, 5, "sm_53+")},
    {"set", ".<fcmp> .<bool> .ftz? .f16 .f16", "d:0, %a:1, %b:1, !c:pred", since(4, 2, "sm_53+")},
    {"set", ".<fcmp> .<bool> .ftz? .{u16,s16,u32,s32} .f16", "d:0, %a:1, %b:1, !c:pred", since(6, 5, "sm_53+")},
    {"set", ".<fcmp> .ftz? .f16x2 .f16x2", "d:0, %a:1, %b:1", since(4, 2, "sm_53+")},
    {"set", ".<fcmp> .ftz? .{u32,s32} .f16x2", "d:0, %a:1, %b:1", since(6, 5, "sm_53+")},
    {"set", ".<fcmp> .<bool> .ftz? .f16x2 .f16x2", "d:0, %a:1, %b:1, !c:pred", since(4, 2, "sm_53+")},
    {"set", ".<fcmp> .<bool> .ftz? .{u32,s32} .f16x2", "d:0, %a:1, %b:1, !c:pred", since(6, 5, "sm_53+")},
    {"set", ".<fcmp> .{bf16,u16,s16,u32,s32} .bf16", "d:0, %a:1, %b:1", kSm90},
    {"set", ".<fcmp> .<bool> .{bf16,u16,s16,u32,s32} .bf16", "d:0, %a:1, %b:1, !c:pred", kSm90},
    {"set", ".<fcmp> .{bf16x2,u32,s32} .bf16x2", "d:0, %a:1, %b:1", kSm90},
    {"set", ".<fcmp> .<bool> .{bf16x2,u32,s32} .bf16x2", "d:0, %a:1, %b:1, !c:pred", kSm90},

    {"selp", ".{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64}", "d, a, b, c:pred", kAny},
    {"slct", ".{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64} .s32", "d:0, a:0, b:0, c:1", kAny},
    {"slct", ".ftz? .{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64} .f32", "d:0, a:0, b:0, c:1", kAny},
};
// clang-format on

}  // namespace

std::span<const Form> logic_forms() { return kLogicRows; }

}  // namespace tilewright::ptx::detail
