// SPDX-License-Identifier: Apache-2.0
// Routing on the host: stable sorts of scores, weights in float64.
#include "kernels/moe_topk/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tilewright {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Indices by falling score; the lower one of equals first, NaN last.
std::vector<std::size_t> ranked(const std::vector<double>& scores) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (std::isnan(scores[a]) || std::isnan(scores[b])) return !std::isnan(scores[a]);
    return scores[a] > scores[b];
  });
  return order;
}

double group_score(std::vector<double> scores) {
  for (double& score : scores) {
    if (std::isnan(score)) score = -kInfinity;
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  return scores.size() == 1 ? scores[0]
                            : static_cast<double>(static_cast<float>(scores[0] + scores[1]));
}

/// Scores outside the best groups become -infinity; a NaN stays behind it.
void mask_groups(const MoeTopkOptions& options, std::vector<double>& scores) {
  auto groups = static_cast<std::size_t>(options.groups);
  std::size_t size = scores.size() / groups;
  std::vector<double> of_groups;
  for (std::size_t g = 0; g < groups; ++g) {
    auto begin = scores.begin() + static_cast<std::ptrdiff_t>(g * size);
    of_groups.push_back(group_score({begin, begin + static_cast<std::ptrdiff_t>(size)}));
  }
  std::vector<std::size_t> order = ranked(of_groups);
  for (std::size_t i = static_cast<std::size_t>(options.topk_group); i < groups; ++i) {
    const auto begin = scores.begin() + static_cast<std::ptrdiff_t>(order[i] * size);
    std::replace_if(
        begin, begin + static_cast<std::ptrdiff_t>(size),
        [](double score) { return !std::isnan(score); }, -kInfinity);
  }
}

struct Row {
  std::vector<std::size_t> experts;
  std::vector<double> weights;
};

double sigmoid_of(double logit) { return 1 / (1 + std::exp(-logit)); }

void weigh_by_sigmoid(const MoeTopkOptions& options, const std::vector<double>& logits,
                      const std::vector<double>& scores, Row& row) {
  double sum = 0;
  for (std::size_t expert : row.experts) {
    double score = sigmoid_of(logits[expert]);
    bool number = !std::isnan(scores[expert]) && !std::isnan(score);
    row.weights.push_back(number ? score : 0);
    sum += row.weights.back();
  }
  if (!options.renormalize) return;
  for (double& weight : row.weights)
    weight /= sum + 1e-20;
}

void weigh_by_softmax(const MoeTopkOptions& options, const std::vector<double>& logits, Row& row) {
  double largest = logits[row.experts[0]];
  auto power = [&](double x) {
    if (std::isnan(x)) return 0.0;
    return x == largest ? 1.0 : std::exp(x - largest);
  };
  bool all = options.scoring == Scoring::softmax && !options.renormalize;
  double sum = 0;
  if (all) {
    for (double logit : logits)
      sum += power(logit);
  }
  for (std::size_t expert : row.experts) {
    row.weights.push_back(power(logits[expert]));
    if (!all) sum += row.weights.back();
  }
  for (double& weight : row.weights)
    weight = sum > 0 ? weight / sum : 0;
}

Row route(const MoeTopkOptions& options, const std::vector<double>& logits,
          const std::vector<double>& bias) {
  std::vector<double> scores = logits;
  bool sigmoid = options.scoring == Scoring::sigmoid;
  for (std::size_t e = 0; sigmoid && e < scores.size(); ++e) {
    auto score = static_cast<float>(sigmoid_of(logits[e]));
    scores[e] = bias.empty() ? score : score + static_cast<float>(bias[e]);
  }
  if (options.topk_group < options.groups) mask_groups(options, scores);
  Row row;
  row.experts = ranked(scores);
  row.experts.resize(static_cast<std::size_t>(options.k));
  if (sigmoid) {
    weigh_by_sigmoid(options, logits, scores, row);
  } else {
    weigh_by_softmax(options, logits, row);
  }
  for (double& weight : row.weights)
    weight *= static_cast<double>(options.scale);
  return row;
}

std::vector<double> doubles_of(const HostTensors& tensors, std::string_view name) {
  const Array* array = tensors.find(name);
  return array == nullptr ? std::vector<double>{} : to_doubles(*array);
}

}  // namespace

void moe_topk_reference(const MoeTopkOptions& options, HostTensors& tensors) {
  const Array& logits = tensors.at("logits");
  std::vector<double> all = to_doubles(logits);
  std::vector<double> bias = doubles_of(tensors, "bias");
  std::vector<double> map = doubles_of(tensors, "expert_map");
  std::vector<double> bound = doubles_of(tensors, "bound_m");
  std::int64_t tokens = logits.shape[0], experts = logits.shape[1];
  std::vector<double> ids, weights;
  for (std::int64_t t = 0; t < tokens; ++t) {
    auto begin = all.begin() + t * experts;
    Row row = route(options, {begin, begin + experts}, bias);
    bool padding = !bound.empty() && static_cast<double>(t) >= bound[0];
    for (std::size_t k = 0; k < row.experts.size(); ++k) {
      std::size_t expert = row.experts[k];
      double id = map.empty() ? static_cast<double>(expert) : map[expert];
      ids.push_back(padding ? -1 : id);
      weights.push_back(padding ? 0 : row.weights[k]);
    }
    for (std::int64_t s = 0; s < options.shared_experts; ++s) {
      ids.push_back(padding ? -1 : static_cast<double>(experts + s));
      weights.push_back(padding ? 0 : static_cast<double>(options.shared_weight));
    }
  }
  std::vector<std::int64_t> shape{tokens, options.k + options.shared_experts};
  tensors.set(make_array("ids", s32, shape, ids));
  tensors.set(make_array("weights", f64, shape, weights));
}

}  // namespace tilewright
