// The keys that open the service. Comparing takes the same time whatever was given, so that nobody can guess a key byte
// by byte.
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
    std::vector<std::string> hashes_; // SHA-256: all of one length, and no key lies in memory
};

// The keys in "one, two". Throws Error when there is none, or one that no request could bring. origin stands in
// messages: "--api-key".
std::vector<std::string> parse_keys(const std::string & text, const std::string & origin);

// One key a line; empty lines and lines that start with # are left out. Throws Error when the file cannot be read or
// has none.
std::vector<std::string> read_key_file(const std::string & path);

std::string without_blanks(const std::string & text); // at both ends

} // namespace penelope
