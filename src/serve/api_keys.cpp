#include "serve/api_keys.h"

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/sha256.h"
#include "base/trim.h"

#include <openssl/crypto.h>

#include <sstream>

namespace penelope {

ApiKeys::ApiKeys(const std::vector<std::string> & keys) {
    for (const std::string & key : keys) {
        hashes_.push_back(sha256_hex(key));
    }
}

bool ApiKeys::accepts(const std::string & key) const {
    const std::string given = sha256_hex(key);
    bool              found = false;
    for (const std::string & hash : hashes_) {
        found |= CRYPTO_memcmp(hash.data(), given.data(), hash.size()) == 0;
    }
    return found;
}

namespace {

constexpr const char * kBlanks   = " \t\r";
constexpr const char * kByteMark = "\xEF\xBB\xBF"; // UTF-8 byte order mark

void add_key(const std::string & text, const std::string & origin, std::vector<std::string> & keys) {
    const std::string key = without_blanks(text);
    if (key.find('%') != std::string::npos) {
        throw Error(ErrorKind::usage, origin + ": API keys must not contain '%'", "use letters, digits, - and _");
    }
    if (!key.empty()) {
        keys.push_back(key);
    }
}

} // namespace

std::string without_blanks(const std::string & text) {
    return trim(text, kBlanks);
}

std::vector<std::string> parse_keys(const std::string & text, const std::string & origin) {
    std::istringstream       in(text);
    std::vector<std::string> keys;
    for (std::string part; std::getline(in, part, ',');) {
        add_key(part, origin, keys);
    }
    if (keys.empty()) {
        throw Error(ErrorKind::usage, origin + ": no API key found", "give one, or omit the option");
    }
    return keys;
}

std::vector<std::string> read_key_file(const std::string & path) {
    const MappedFile file = MappedFile::open(path);
    std::string      text(reinterpret_cast<const char *>(file.data()), file.size());
    if (text.compare(0, 3, kByteMark) == 0) {
        text.erase(0, 3);
    }
    std::istringstream       in(text);
    std::vector<std::string> keys;
    for (std::string line; std::getline(in, line);) {
        if (line[0] != '#') {
            add_key(line, path, keys);
        }
    }
    if (keys.empty()) {
        throw Error(ErrorKind::format, path + ": no API key found", "write one key per line");
    }
    return keys;
}

} // namespace penelope
