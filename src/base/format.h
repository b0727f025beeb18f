// Numbers and strings for people: sizes, durations, counts, lists, and text from files made safe to print.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penelope {

std::string format_bytes(uint64_t bytes);                  // "512 B", "1.5 KiB", "3.21 GiB"
std::string format_duration(double ms);                    // "0.42 ms", "12.3 s", "4 min 05 s", "2 h 03 min"
std::string format_count(uint64_t n);                      // "999", "12.3K", "64.08M", "1.24B"
std::string format_shape(const std::vector<int64_t> & ne); // "[64, 3]"
std::string join(const std::vector<std::string> & parts, std::string_view separator);

// The parts between separators, empty ones included; what follows the last separator counts unless it is empty.
std::vector<std::string> split(const std::string & text, char separator);

bool        ends_with(std::string_view text, std::string_view tail);
std::string to_upper(std::string_view text); // letters of ASCII
std::string to_lower(std::string_view text);

// The text between single quotes, safe for a terminal and for JSON: control characters and bytes that are not UTF-8
// become \xNN, and text beyond max_bytes is cut with "...". For names and values that come out of a file.
std::string in_quotes(std::string_view text, size_t max_bytes = 80);

} // namespace penelope
