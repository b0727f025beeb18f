#include "serve/api_keys.h"

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/sha256.h"

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

std::vector<std::string> read_key_file(const std::string & path) {
    const MappedFile         file = MappedFile::open(path);
    std::istringstream       in{ std::string(reinterpret_cast<const char *>(file.data()), file.size()) };
    std::vector<std::string> keys;
    for (std::string line; std::getline(in, line);) {
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) {
            line.pop_back();
        }
        if (!line.empty() && line[0] != '#') {
            keys.push_back(line);
        }
    }
    if (keys.empty()) {
        throw Error(ErrorKind::format, path + ": holds no key", "write one key a line");
    }
    return keys;
}

} // namespace penelope
