// SPDX-License-Identifier: Apache-2.0
// Lesson 14: two devices that exchange data while their kernels run, and wait for one another by
// flags: no host in between. Two GPUs that reach each other's memory, or two emulated devices.
//
//   device 0   sum ------.   .----> inbox, flag      each writes into the other's inbox,
//                         \ /                        then raises the other's flag (release);
//                         / \                        who sees its own flag (acquire)
//   device 1   sum ------'   '----> inbox, flag      may read its inbox
#include "tilewright/tilewright.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace tw = tilewright;

constexpr int kThreads = 64;

// begin kernel
/// `outbox` and `raise` are the other device's inbox and flag. No device is more than one round
/// ahead of the other, so that two halves of an inbox suffice.
struct Exchange {
  int rounds;
  tw::Scope scope = tw::Scope::sys;  // Scope::gpu would not reach the other device

  void operator()(const tw::Tensor& outbox, const tw::Tensor& raise, const tw::Tensor& inbox,
                  const tw::Tensor& flag, const tw::Tensor& sums) const {
    tw::Value i = tw::thread_idx().x;
    tw::Var sum(tw::u32, sums(i).load());
    tw::for_(rounds, [&](const tw::Value& round) {
      tw::Value half = round % 2;
      outbox(half, i) = sum;
      tw::barrier();  // the block's words are written, as its first thread now knows
      tw::if_(i == 0, [&] {
        tw::store_release(raise(0), round + 1, scope);  // what it knows of is visible before that
        tw::while_([&] { return tw::load_acquire(flag(0), scope) <= round; }, [] {});
      });
      tw::barrier();  // and what it has acquired, the block may read
      sum = inbox(half, i) * 3u + round.to(tw::u32);  // goes back in the next round
    });
    sums(i) = sum;
  }
};
// end kernel

/// A device with its inbox, its flag, and the sums, which begin as `first`.
struct Node {
  tw::Buffer inbox, flag, sums;
  tw::Stream stream;

  Node(const tw::Device& device, std::uint32_t first)
      : inbox(device, std::int64_t{2} * kThreads * 4),
        flag(device, 4),
        sums(tw::upload<std::uint32_t>(device, std::vector<std::uint32_t>(kThreads, first))),
        stream(device) {
    flag.fill(std::byte{0});
  }
  tw::PreparedLaunch launch(const Exchange& exchange, const Node& other) const {
    tw::TensorArg words{tw::u32, tw::Shape{kThreads}, tw::Stride{1}, 16};
    tw::TensorArg boxes{tw::u32, tw::Shape{2, kThreads}, tw::Stride{kThreads, 1}, 16};
    tw::TensorArg word{tw::s32, tw::Shape{1}, tw::Stride{1}, 16};
    tw::TraceOptions options{
        .name = "exchange", .target = sums.device().target(), .block = {kThreads, 1, 1}};
    tw::Traced traced = tw::trace(options, exchange, boxes, word, boxes, word, words);
    tw::Parameters parameters;
    for (const tw::Buffer* b : {&other.inbox, &other.flag, &inbox, &flag, &sums})
      parameters.add(b->address());
    return tw::compile(sums.device(), std::move(traced))
        .prepare({.block = {kThreads}}, std::move(parameters));
  }
};

/// Runs the exchange; returns how many sums are wrong.
int wrong_sums(const std::vector<tw::Device>& devices, const Exchange& kernel) {
  Node a(devices[0], 1), b(devices[1], 1000);
  tw::PreparedLaunch at_a = a.launch(kernel, b), at_b = b.launch(kernel, a);
  const tw::PeerLaunch both[] = {{at_a, a.stream}, {at_b, b.stream}};
  tw::Event begin(devices[0]), end(devices[0]);
  begin.record(a.stream);
  tw::launch_together(both);
  end.record(a.stream);
  std::uint32_t x = 1, y = 1000;
  for (int round = 0; round < kernel.rounds; ++round) {
    std::swap(x, y);
    x = x * 3 + static_cast<std::uint32_t>(round), y = y * 3 + static_cast<std::uint32_t>(round);
  }
  if (devices[0].kind() == tw::DeviceKind::cuda)
    std::printf("%.2f us a round\n", 1000 * tw::elapsed_ms(begin, end) / kernel.rounds);
  b.stream.synchronize();
  auto sum_a = tw::download<std::uint32_t>(a.sums), sum_b = tw::download<std::uint32_t>(b.sums);
  return 2 * kThreads - static_cast<int>(std::count(sum_a.begin(), sum_a.end(), x) +
                                         std::count(sum_b.begin(), sum_b.end(), y));
}

int run(const std::string& first) {
  bool emulated = first.starts_with("emu:");
  if (!emulated && tw::Device::cuda_count() < 2) return std::puts("exchange: takes two GPUs"), 0;
  const std::string names[] = {first, emulated ? first : first == "cuda:1" ? "cuda:0" : "cuda:1"};
  std::vector<tw::Device> devices = tw::open_peers(names);
  int wrong = wrong_sums(devices, {.rounds = emulated ? 3 : 1000});
  std::printf("exchange: %d sums are wrong\n", wrong);
  if (wrong != 0 || !devices[0].findings().empty() || !devices[1].findings().empty()) return 1;
  if (!emulated) return 0;
  // A flag for one device orders nothing between two: reported, though sums may be right by luck.
  wrong_sums(devices, {.rounds = 3, .scope = tw::Scope::gpu});
  for (const tw::emu::Diagnostic& one : devices[0].findings())
    return std::printf("with Scope::gpu: %s\n", tw::emu::to_string(one).c_str()), 0;
  return 1;
}

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "emu:sm_90a");
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
