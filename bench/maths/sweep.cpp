// SPDX-License-Identifier: Apache-2.0
// Measures the error of every maths function over all f32 numbers, on the host, a GPU or the
// emulator.
#include "bench/maths/device_sweep.h"
#include "bench/maths/inputs.h"
#include "bench/maths/reference.h"
#include "test/ulp.h"
#include "tilewright/tilewright.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tw = tilewright;

namespace {

using bench::Inputs;
using bench::Worst;

constexpr const char* kUsage =
    "usage: maths_sweep [--device host|cuda:N|emu:sm_XX] [--only NAME] [--first BITS]\n"
    "                   [--log2-count N] [--log2-pairs N] [--stride N] [--samples N]\n"
    "                   [--references 1] [--commit TEXT] [--json FILE]\n"
    "Evaluates each function at the f32 numbers whose bits are FIRST, FIRST + STRIDE, ... below\n"
    "FIRST + 2^N (default: all), or at as many pairs (default: 2^30), and prints the largest "
    "error\n"
    "in ulp. A device holds the results against a reference in f64 of its own; SAMPLES of them\n"
    "(default: 2^22) are held against the host's, too. --references 1 compares the references\n"
    "with the host's library.\n";

struct Options {
  std::string device = "host", only, commit, json;
  std::uint64_t first = 0, stride = 1, span = std::uint64_t{1} << 32;
  std::uint64_t pairs = std::uint64_t{1} << 30, samples = std::uint64_t{1} << 22;
  bool references = false;
};

/// What a reference may be off.
constexpr double kReferenceUlp = 0.01;

struct Batch {
  std::vector<float> x, y, got;
};

/// `body(begin, end, thread)` over [0, n) on all cores.
template <class F>
void parallel(std::size_t n, F body) {
  std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> pool;
  for (std::size_t t = 0; t < threads; ++t) {
    pool.emplace_back([=, &body] { body(n * t / threads, n * (t + 1) / threads, t); });
  }
  for (std::thread& thread : pool)
    thread.join();
}

/// Fills x and y with inputs number `from` and on.
void fill(Batch& batch, const tw::MathFunction& function, const Inputs& inputs,
          std::uint64_t from) {
  parallel(batch.x.size(), [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      std::uint64_t n = inputs.first + (from + i) * inputs.stride;
      batch.x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(n));
      if (function.arguments == 1) continue;
      auto bits = bench::pair_of(tw::lang::Host(n));
      batch.x[i] = std::bit_cast<float>(bits.x.v);
      batch.y[i] = std::bit_cast<float>(bits.y.v);
    }
  });
}

/// The first `count` of a batch.
Worst compare(const Batch& batch, std::size_t count, const tw::MathFunction& function) {
  std::vector<Worst> parts(std::max(1u, std::thread::hardware_concurrency()));
  parallel(count, [&](std::size_t begin, std::size_t end, std::size_t thread) {
    Worst worst;
    for (std::size_t i = begin; i < end; ++i) {
      float x = batch.x[i];
      float y = batch.y[i];
      float got = batch.got[i];
      double exact = function.exact(static_cast<double>(x), static_cast<double>(y));
      double ulp = tw::test::ulp_error(got, exact);
      worst.steps = std::max(worst.steps, tw::test::f32_steps(got, exact));
      worst.beyond_bound += ulp > function.bound_ulp ? 1 : 0;
      if (function.agreement == tw::HostAgreement::bits && got == got) {
        ++worst.compared;
        float host = function.host(x, y);
        worst.unlike_host +=
            std::bit_cast<std::uint32_t>(host) != std::bit_cast<std::uint32_t>(got);
      }
      if (ulp > worst.ulp) {
        worst.ulp = ulp, worst.x = x, worst.y = y, worst.got = got;
      }
    }
    worst.inputs = end - begin;
    parts[thread] = worst;
  });
  Worst all;
  for (const Worst& part : parts)
    all.merge(part);
  return all;
}

/// Evaluates batches of one size on a device.
class DeviceEvaluator {
 public:
  DeviceEvaluator(const tw::Device& device, const tw::MathFunction& function, std::size_t elems)
      : stream_(device),
        x_(device, bytes(elems)),
        y_(device, bytes(elems)),
        out_(device, bytes(elems)),
        kernel_(make_kernel(device, function, elems)) {}

  void operator()(Batch& batch) const {
    x_.upload(std::as_bytes(std::span(batch.x)));
    y_.upload(std::as_bytes(std::span(batch.y)));
    tw::Parameters parameters;
    parameters.add(x_.address()).add(y_.address()).add(out_.address());
    int blocks = static_cast<int>(batch.x.size() / kThreads);
    kernel_.launch({.grid = {blocks}, .block = {kThreads}}, parameters, stream_);
    stream_.synchronize();
    out_.download(std::as_writable_bytes(std::span(batch.got)));
  }

  static constexpr int kThreads = 256;

 private:
  static std::int64_t bytes(std::size_t elems) { return static_cast<std::int64_t>(4 * elems); }

  static tw::Kernel make_kernel(const tw::Device& device, const tw::MathFunction& function,
                                std::size_t elems) {
    const std::int64_t shape[] = {static_cast<std::int64_t>(elems)};
    tw::TensorArg arg = tw::tensor_arg(tw::make_view(0, tw::f32, shape));
    arg.alignment_bytes = 16;
    tw::TraceOptions options{.name = std::string("maths_sweep_") + std::string(function.name),
                             .target = device.target(),
                             .block = {kThreads, 1, 1}};
    auto body = [&](const tw::Tensor& x, const tw::Tensor& y, const tw::Tensor& out) {
      tw::Value i = tw::block_idx().x * kThreads + tw::thread_idx().x;
      out(i) = function.traced(x(i).load(), y(i).load());
    };
    return tw::compile(device, tw::trace(options, body, arg, arg, arg));
  }

  tw::Stream stream_;
  tw::Buffer x_, y_, out_;
  tw::Kernel kernel_;
};

void evaluate_on_host(Batch& batch, const tw::MathFunction& function) {
  parallel(batch.x.size(), [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i)
      batch.got[i] = function.host(batch.x[i], batch.y[i]);
  });
}

/// The inputs in batches: to the host, to a device if `evaluate` is one, and compared on the host.
Worst sweep_by_host(const tw::MathFunction& function, const Inputs& inputs,
                    const std::optional<tw::Device>& device) {
  std::size_t elems = std::min<std::uint64_t>(inputs.count, std::uint64_t{1} << 22);
  constexpr std::size_t kThreads = DeviceEvaluator::kThreads;
  elems = (elems + kThreads - 1) / kThreads * kThreads;
  Batch batch{std::vector<float>(elems), std::vector<float>(elems), std::vector<float>(elems)};
  std::optional<DeviceEvaluator> evaluate;
  if (device) evaluate.emplace(*device, function, elems);
  Worst worst;
  for (std::uint64_t from = 0; from < inputs.count; from += elems) {
    fill(batch, function, inputs, from);
    evaluate ? (*evaluate)(batch) : evaluate_on_host(batch, function);
    worst.merge(compare(batch, std::min<std::uint64_t>(elems, inputs.count - from), function));
  }
  return worst;
}

/// All inputs on the device; samples of them, and the worst one, on the host as well.
Worst sweep_by_device(const tw::MathFunction& function, const Inputs& inputs,
                      const Options& options) {
  tw::Device device = tw::Device::open(options.device);
  Worst all = bench::sweep_on_device(device, function, inputs);
  std::uint64_t skip = std::max<std::uint64_t>(inputs.count / options.samples, 1);
  Inputs samples{inputs.first, inputs.stride * skip, inputs.count / skip};
  Worst sampled = sweep_by_host(function, samples, device);
  all.compared = sampled.compared, all.unlike_host = sampled.unlike_host;

  Batch batch{std::vector<float>(DeviceEvaluator::kThreads, all.x),
              std::vector<float>(DeviceEvaluator::kThreads, all.y),
              std::vector<float>(DeviceEvaluator::kThreads)};
  DeviceEvaluator(device, function, batch.x.size())(batch);
  Worst again = compare(batch, 1, function);
  if (!(std::abs(again.ulp - all.ulp) <= kReferenceUlp) || sampled.ulp > all.ulp + kReferenceUlp) {
    throw tw::Error(tw::ErrorKind::internal,
                    std::string(function.name) + ": the device's reference finds " +
                        std::to_string(all.ulp) + " ulp, the host " + std::to_string(again.ulp) +
                        " there and " + std::to_string(sampled.ulp) + " in samples");
  }
  all.ulp = again.ulp, all.got = again.got;
  return all;
}

Worst sweep(const tw::MathFunction& function, const Options& options) {
  std::uint64_t span = function.arguments == 1 ? options.span : options.pairs;
  Inputs inputs{options.first, options.stride, std::max<std::uint64_t>(span / options.stride, 1)};
  if (options.device == "host") return sweep_by_host(function, inputs, {});
  return sweep_by_device(function, inputs, options);
}

/// The largest difference between a reference and the host's library, in ulp of f32, at normal
/// results that f32 has.
double reference_error(const tw::MathFunction& function, const Options& options) {
  const bench::Reference& reference = bench::reference_of(function.name);
  Batch batch{std::vector<float>(options.samples), std::vector<float>(options.samples), {}};
  std::uint64_t stride = (std::uint64_t{1} << 32) / options.samples | 1;
  fill(batch, function, {options.first, stride, options.samples}, 0);
  double worst = 0;
  for (std::size_t i = 0; i < batch.x.size(); ++i) {
    auto x = static_cast<double>(batch.x[i]), y = static_cast<double>(batch.y[i]);
    double ours = reference.host(x, y), library = function.exact(x, y);
    auto kind = [](double value) {
      return std::isnan(value) ? 2 : std::isinf(static_cast<float>(value)) ? 1 : 0;
    };
    if (kind(ours) != kind(library)) return std::numeric_limits<double>::infinity();
    if (kind(ours) != 0) continue;
    int exponent = std::max(library == 0 ? -126 : std::ilogb(library), -126);
    worst = std::max(worst, std::ldexp(std::abs(ours - library), 23 - exponent));
  }
  return worst;
}

int check_references(const Options& options) {
  bool good = true;
  for (const tw::MathFunction& function : tw::math_functions()) {
    if (!options.only.empty() && function.name != options.only) continue;
    double error = reference_error(function, options);
    good = good && error < kReferenceUlp;
    std::printf("%-8s reference within %.7f ulp of the host's\n",
                std::string(function.name).c_str(), error);
  }
  return good ? 0 : 1;
}

/// Google Benchmark's format, which scripts/docs.py reads; a "time" is that of evaluating and
/// comparing one input.
void write_row(std::FILE* file, const tw::MathFunction& f, const Worst& w, double seconds,
               const char* separator) {
  char y[40] = "";
  if (f.arguments == 2) std::snprintf(y, sizeof y, ", \"y\": \"%a\"", static_cast<double>(w.y));
  std::fprintf(
      file,
      "    {\"name\": \"%s\", \"inputs\": %llu, \"max_ulp\": %.4f, \"max_steps\": %lld, "
      "\"x\": \"%a\"%s, \"got\": \"%a\",\n     \"bound_ulp\": %g, \"cuda_steps\": %d, "
      "\"beyond_bound\": %llu, "
      "\"compared\": %llu, \"unlike_host\": %llu, \"real_time\": %.3f, \"time_unit\": \"ns\"}%s\n",
      std::string(f.name).c_str(), static_cast<unsigned long long>(w.inputs), w.ulp,
      static_cast<long long>(w.steps), static_cast<double>(w.x), y, static_cast<double>(w.got),
      f.bound_ulp, f.cuda_steps, static_cast<unsigned long long>(w.beyond_bound),
      static_cast<unsigned long long>(w.compared), static_cast<unsigned long long>(w.unlike_host),
      seconds * 1e9 / static_cast<double>(w.inputs), separator);
}

struct Row {
  const tw::MathFunction* function;
  Worst worst;
  double seconds;
};

void write_json(std::FILE* file, const std::vector<Row>& rows, const Options& options) {
  tw::DeviceProperties device{.name = options.device, .target = {}};
  if (options.device != "host") device = tw::Device::open(options.device).properties();
  std::string driver;
  if (device.driver_version > 0) {
    int version = device.driver_version;
    driver = ", \"driver\": \"CUDA " + std::to_string(version / 1000) + "." +
             std::to_string(version % 1000 / 10) + "\"";
  }
  std::fprintf(file,
               "{\n  \"context\": {\"device\": \"%s\"%s, \"commit\": \"%s\", \"first\": %llu, "
               "\"stride\": %llu, \"span\": %llu, \"pairs\": %llu},\n  \"benchmarks\": [\n",
               device.name.c_str(), driver.c_str(), options.commit.c_str(),
               static_cast<unsigned long long>(options.first),
               static_cast<unsigned long long>(options.stride),
               static_cast<unsigned long long>(options.span),
               static_cast<unsigned long long>(options.pairs));
  for (const Row& row : rows) {
    write_row(file, *row.function, row.worst, row.seconds, &row == &rows.back() ? "" : ",");
  }
  std::fputs("  ]\n}\n", file);
}

int run(const Options& options) {
  std::vector<Row> rows;
  bool good = true;
  for (const tw::MathFunction& function : tw::math_functions()) {
    if (!options.only.empty() && function.name != options.only) continue;
    auto begin = std::chrono::steady_clock::now();
    Worst worst = sweep(function, options);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    good = good && worst.beyond_bound == 0 && worst.unlike_host == 0;
    rows.push_back({&function, worst, took.count()});
    std::printf(
        "%-8s %.4f ulp (%lld steps) at %a %a: %a; bound %g, %llu beyond, %llu unlike host\n",
        std::string(function.name).c_str(), worst.ulp, static_cast<long long>(worst.steps),
        static_cast<double>(worst.x), static_cast<double>(worst.y), static_cast<double>(worst.got),
        function.bound_ulp, static_cast<unsigned long long>(worst.beyond_bound),
        static_cast<unsigned long long>(worst.unlike_host));
    std::fflush(stdout);
  }
  if (!options.json.empty()) {
    std::FILE* file = std::fopen(options.json.c_str(), "w");
    if (file == nullptr) return std::fprintf(stderr, "cannot write %s\n", options.json.c_str()), 2;
    write_json(file, rows, options);
    std::fclose(file);
  }
  return good ? 0 : 1;
}

bool set_option(Options& options, const std::string& flag, const char* text) {
  std::uint64_t number = std::strtoull(text, nullptr, 0);
  if (flag == "--device") return options.device = text, true;
  if (flag == "--only") return options.only = text, true;
  if (flag == "--commit") return options.commit = text, true;
  if (flag == "--json") return options.json = text, true;
  if (flag == "--first") return options.first = number, true;
  if (flag == "--stride" && number > 0) return options.stride = number, true;
  if (flag == "--references") return options.references = number != 0, true;
  if (flag == "--samples" && number > 0) return options.samples = number, true;
  if (flag == "--log2-count" && number <= 32)
    return options.span = std::uint64_t{1} << number, true;
  if (flag == "--log2-pairs" && number <= 32)
    return options.pairs = std::uint64_t{1} << number, true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    std::string flag = argv[i];
    if (i + 1 == argc || !set_option(options, flag, argv[i + 1]))
      return std::fputs(kUsage, stderr), 2;
  }
  try {
    return options.references ? check_references(options) : run(options);
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
