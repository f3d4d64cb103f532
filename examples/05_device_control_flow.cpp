// SPDX-License-Identifier: Apache-2.0
// Lesson 5: what is decided when, while recording or on the device; loops that threads leave alone.
#include "tilewright/tilewright.h"

#include <cstdint>
#include <cstdio>
#include <vector>

namespace tw = tilewright;

enum class Order { ascending, descending };

// begin kernel
// Steps of the Collatz sequence from each start, 0 where a number outgrows 32 bits.
void collatz(Order order, const tw::Tensor& steps) {
  tw::Value i = tw::block_idx().x * tw::block_dim().x + tw::thread_idx().x;
  tw::Value n = tw::to_value(steps.shape()[0].value());

  // C++'s `if` and `?:` choose what is recorded: this specialisation knows one order only.
  tw::Value start = order == Order::ascending ? i + 1 : n - i;

  // `if_` records both of its sides, and the device chooses for each thread.
  tw::if_(i < n, [&] {
    tw::Var number(tw::s32, start);
    tw::Var count(tw::s32, 0);

    // Threads leave the loop one by one: a barrier inside would be refused while recording, since
    // whether a thread is still here differs within the block.
    tw::while_([&] { return number != 1; },
               [&] {
                 tw::if_((number & 1) == 0, [&] { number = number >> 1; }).else_([&] {
                   tw::if_(number > (INT32_MAX - 1) / 3, [&] {
                     count = 0;
                     tw::break_();
                   });
                   number = number * 3 + 1;
                 });
                 count += 1;
               });
    steps(i) = count;
  });
}
// end kernel

std::int32_t collatz_on_host(std::int64_t number) {
  std::int32_t count = 0;
  for (; number != 1; ++count) {
    number = number % 2 == 0 ? number / 2 : number * 3 + 1;
    if (number > INT32_MAX) return 0;
  }
  return count;
}

int run_in(Order order, const tw::Device& device) {
  constexpr int kStarts = 300;
  constexpr int kThreads = 64;
  tw::Buffer memory(device, kStarts * std::int64_t{sizeof(std::int32_t)});
  const std::int64_t shape[] = {kStarts};
  tw::View view = tw::make_view(memory.address(), tw::s32, shape);
  tw::TensorArg arg = tw::tensor_arg(view, {.extents = 1});
  tw::TraceOptions options{
      .name = order == Order::ascending ? "collatz_ascending" : "collatz_descending",
      .target = device.target(),
      .block = {kThreads, 1, 1}};
  auto body = [order](const tw::Tensor& steps) { collatz(order, steps); };
  tw::Kernel kernel = tw::compile(device, tw::trace(options, body, arg));
  tw::Parameters parameters;
  tw::pack(parameters, arg, view);
  tw::Stream stream(device);
  kernel.launch({.grid = {(kStarts + kThreads - 1) / kThreads}, .block = {kThreads}}, parameters,
                stream);
  stream.synchronize();

  std::vector<std::int32_t> steps = tw::download<std::int32_t>(memory);
  for (int i = 0; i < kStarts; ++i) {
    int start = order == Order::ascending ? i + 1 : kStarts - i;
    std::int32_t is = steps[static_cast<std::size_t>(i)];
    if (is == collatz_on_host(start)) continue;
    return std::printf("collatz: %d takes %d steps, not %d\n", start, collatz_on_host(start), is),
           1;
  }
  std::printf("%s: %d starts are right on %s, %zu findings\n", options.name.c_str(), kStarts,
              device.id().c_str(), device.findings().size());
  return device.findings().empty() ? 0 : 3;
}

int main(int argc, char** argv) {
  try {
    tw::Device device = tw::Device::open(argc > 1 ? argv[1] : "emu:sm_90a");
    int ascending = run_in(Order::ascending, device);
    return ascending != 0 ? ascending : run_in(Order::descending, device);
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
