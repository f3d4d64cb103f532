// SPDX-License-Identifier: Apache-2.0
// Shadows of memory: a record a line, or a record a word where the accesses of a line differ.
#include "emu/shadow.h"

namespace tilewright::emu::detail {

namespace {
constexpr std::size_t kWordBytes = 2 * sizeof(std::uint64_t) + 3 * sizeof(std::uint32_t);
}  // namespace

ShadowMap::ShadowMap(std::size_t words, std::int64_t* touched)
    : lines_((words + ShadowLine::kWords - 1) / ShadowLine::kWords), touched_(touched) {
  count_bytes(lines_.size() * sizeof(ShadowLine), 1);
}

ShadowMap::~ShadowMap() {
  count_bytes(lines_.size() * sizeof(ShadowLine), -1);
  if (!by_word_) return;
  count_bytes(words() * kWordBytes, -1);
  for (const auto& line : by_word_->parts) {
    if (line) count_bytes(sizeof(PartLine) + line->part.size() * sizeof(Part), -1);
  }
}

void ShadowMap::count_bytes(std::size_t bytes, int sign) {
  if (touched_ != nullptr) *touched_ += sign * static_cast<std::int64_t>(bytes);
}

void ShadowMap::make_words() {
  by_word_ = std::make_unique<Words>();
  by_word_->writer.resize(words());
  by_word_->reader.resize(words());
  by_word_->lanes.resize(words());
  by_word_->writer_pc.resize(words());
  by_word_->reader_pc.resize(words());
  count_bytes(words() * kWordBytes, 1);
}

void ShadowMap::expand(std::size_t index) {
  ShadowLine& line = lines_[index];
  if (line.by_word) return;
  if (!by_word_) make_words();
  line.by_word = true;
  Words& to = *by_word_;
  for (unsigned w = 0; w < ShadowLine::kWords; ++w) {
    const std::size_t i = index * ShadowLine::kWords + w;
    to.writer[i] = line.writer == 0 ? 0 : line.writer_of(w);
    to.reader[i] = line.reader;
    to.lanes[i] = line.lanes_of(w);
    to.writer_pc[i] = line.writer_pc;
    to.reader_pc[i] = line.reader_pc;
  }
}

ShadowView ShadowMap::view(std::size_t word, std::size_t count) {
  const std::size_t last = (word + count - 1) / ShadowLine::kWords;
  for (std::size_t i = word / ShadowLine::kWords; i <= last; ++i)
    expand(i);
  Words& w = *by_word_;
  return {&w.writer[word], &w.reader[word], &w.lanes[word], &w.writer_pc[word], &w.reader_pc[word]};
}

void ShadowMap::widen(PartLine& line, std::size_t stride) {
  std::vector<Part> wide(stride * ShadowLine::kWords);
  for (std::size_t i = 0; i < line.part.size(); ++i)
    wide[i / line.stride * stride + i % line.stride] = line.part[i];
  count_bytes((wide.size() - line.part.size()) * sizeof(Part), 1);
  line.part = std::move(wide);
  line.stride = stride;
}

std::span<Part> ShadowMap::split(std::size_t word, unsigned count) {
  auto& lines = by_word_->parts;
  if (lines.empty()) lines.resize(lines_.size());
  auto& line = lines[word / ShadowLine::kWords];
  if (!line) {
    line = std::make_unique<PartLine>();
    count_bytes(sizeof(PartLine), 1);
  }
  if (line->stride < count) widen(*line, count);
  const std::size_t at = word % ShadowLine::kWords;
  std::uint8_t& parts = line->count[at];
  Part* part = &line->part[at * line->stride];
  if (parts == 2 && count == 4) {
    part[3] = part[2] = part[1];
    part[1] = part[0];
  }
  if (parts < count) parts = static_cast<std::uint8_t>(count);
  return {part, parts};
}

}  // namespace tilewright::emu::detail
