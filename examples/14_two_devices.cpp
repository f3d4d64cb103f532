// SPDX-License-Identifier: Apache-2.0
// Lesson 14: two devices that exchange data while their kernels run, and wait for one another by
// flags: no host in between. Here both are emulated, with memory that each can reach.
//
//   device 0   mine -----.   .----> inbox, flag      each writes into the other's inbox,
//                         \ /                        then raises the other's flag (release);
//                         / \                        who sees its own flag (acquire)
//   device 1   mine -----'   '----> inbox, flag      may read its inbox
#include "tilewright/tilewright.h"

#include <cstdio>
#include <span>
#include <vector>

namespace tw = tilewright;

constexpr int kThreads = 64;
constexpr std::int64_t kBytes = kThreads * std::int64_t{4};

// begin kernel
/// `outbox` and `raise` are the other device's inbox and flag.
struct Exchange {
  tw::Scope scope = tw::Scope::sys;  // Scope::gpu would not reach the other device

  void operator()(const tw::Tensor& mine, const tw::Tensor& outbox, const tw::Tensor& raise,
                  const tw::Tensor& inbox, const tw::Tensor& flag, const tw::Tensor& sums) const {
    tw::Value i = tw::thread_idx().x;
    outbox(i) = mine(i);
    tw::barrier();  // the block's words are written, as its first thread now knows
    tw::if_(i == 0, [&] {
      tw::store_release(raise(0), 1, scope);  // what it knows of is visible before the flag is
      tw::while_([&] { return tw::load_acquire(flag(0), scope) == 0; }, [] {});
    });
    tw::barrier();  // and what it has acquired, the block may read
    sums(i) = mine(i) + inbox(i);
  }
};
// end kernel

/// A device with its own words, its inbox and flag, and the sums, one after the other.
struct Node {
  tw::emu::Machine machine;
  std::uint64_t mine, inbox, flag, sums;

  Node(tw::emu::Fabric& fabric, int first)
      : machine(tw::ptx::parse_target("sm_90a"), {.fabric = &fabric}),
        mine(machine.allocate(kBytes, "mine")),
        inbox(machine.allocate(kBytes, "inbox")),
        flag(machine.allocate(4, "flag")),
        sums(machine.allocate(kBytes, "sums")) {
    std::vector<std::int32_t> values(kThreads);
    for (int i = 0; i < kThreads; ++i)
      values[static_cast<std::size_t>(i)] = first + i;
    machine.write(mine, std::as_bytes(std::span(values)));
    machine.fill(flag, 4, 0);
  }

  tw::emu::Work work(const tw::Traced& traced, const Node& other) {
    tw::emu::Launch launch;
    launch.program = machine.load(traced.module());
    launch.entry = traced.entry;
    launch.block.x = kThreads;
    tw::Parameters parameters;
    for (std::uint64_t address : {mine, other.inbox, other.flag, inbox, flag, sums})
      parameters.add(address);
    launch.params.assign(parameters.bytes().begin(), parameters.bytes().end());
    return {&machine, launch};
  }
};

/// Runs the exchange; returns what the devices found wrong, or nothing for wrong sums.
std::size_t exchange(tw::Scope scope, bool& right) {
  tw::TensorArg words{tw::s32, tw::Shape{kThreads}, tw::Stride{1}, 16};
  tw::TensorArg word{tw::u32, tw::Shape{1}, tw::Stride{1}, 16};
  tw::TraceOptions options{.name = "exchange", .block = {kThreads, 1, 1}};
  tw::Traced traced = tw::trace(options, Exchange{scope}, words, words, word, words, word, words);

  tw::emu::Fabric fabric;  // an address space that both devices share
  Node a(fabric, 0);
  Node b(fabric, 1000);
  const tw::emu::Work work[] = {a.work(traced, b), b.work(traced, a)};
  std::size_t findings = 0;
  for (const tw::emu::LaunchReport& report : tw::emu::launch_together(work)) {
    if (findings == 0 && !report.findings.empty())
      std::printf("%s\n", tw::emu::to_string(report.findings[0]).c_str());
    findings += report.findings.size();
  }
  right = true;
  for (const Node* node : {&a, &b}) {
    std::vector<std::int32_t> sums(kThreads);
    node->machine.read(node->sums, std::as_writable_bytes(std::span(sums)));
    for (int i = 0; i < kThreads; ++i)
      right = right && sums[static_cast<std::size_t>(i)] == 1000 + 2 * i;
  }
  return findings;
}

int main() {
  try {
    bool right = false;
    std::size_t findings = exchange(tw::Scope::sys, right);
    std::printf("exchange: sums are %s, %zu findings\n", right ? "right" : "WRONG", findings);
    if (!right || findings != 0) return 1;
    // A flag for this device alone orders nothing between two: reported, though the sums may be
    // right by luck.
    return exchange(tw::Scope::gpu, right) > 0 ? 0 : 1;
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
