// API keys that clients must send. Keys are compared by hash in constant time, so that timing does not help to guess
// one.
#pragma once

#include <string>
#include <vector>

namespace penelope {

class ApiKeys {
  public:
    ApiKeys() = default;
    explicit ApiKeys(const std::vector<std::string> & keys);

    bool empty() const { return hashes_.empty(); }
    bool accepts(const std::string & key) const;

  private:
    std::vector<std::string> hashes_; // SHA-256: equal lengths, and no plain key stays in memory
};

// Splits "one, two". Throws Error when there is no key or one that a header cannot carry. origin is named in messages:
// "--api-key".
std::vector<std::string> parse_keys(const std::string & text, const std::string & origin);

// One key per line; empty lines and lines that start with # are skipped. Throws Error when the file cannot be read or
// has no key.
std::vector<std::string> read_key_file(const std::string & path);

std::string without_blanks(const std::string & text); // at both ends

} // namespace penelope
