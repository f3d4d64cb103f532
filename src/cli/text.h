// SPDX-License-Identifier: Apache-2.0
// Text for people: numbers with separators, sizes with units, aligned columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::cli {

void print(const std::string& text);  ///< to stdout
/// Throws Error(user) where it cannot.
void write_file(const std::string& path, const std::string& text);
std::string grouped(std::int64_t value);  ///< "1,234,567"
std::string grouped(std::uint64_t value);
std::string bytes_text(std::int64_t bytes);               ///< "1.5 MiB"; "512 bytes"
std::string number_text(double value);                    ///< the shortest that reads back the same
std::string fixed(double value, int decimals);            ///< "3.14"
std::string plural(std::int64_t count, const char* one);  ///< "1 entry", "2 entries"

/// Rows of cells, printed with two spaces between columns that are as wide as their widest cell.
class Columns {
 public:
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text(const std::string& indent = "") const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tilewright::cli
