#include "hub/settings.h"

#include "base/error.h"
#include "base/format.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>

namespace penelope {

namespace fs = std::filesystem;

namespace {

std::string environment(const char * name) {
    const char * value = std::getenv(name);
    return value == nullptr ? "" : value;
}

// HF_HOME, or its default.
fs::path hub_home() {
    for (const auto & [name, inside] : { std::pair("HF_HOME", ""), std::pair("XDG_CACHE_HOME", "huggingface"),
                                         std::pair("HOME", ".cache/huggingface") }) {
        if (const std::string value = environment(name); !value.empty()) {
            return *inside == '\0' ? fs::path(value) : fs::path(value) / inside;
        }
    }
    throw Error(ErrorKind::usage, "HF_HOME and HOME: not set", "set HF_HOME to the folder models are stored in");
}

fs::path cache_folder() {
    for (const char * name : { "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE" }) {
        if (const std::string value = environment(name); !value.empty()) {
            return value;
        }
    }
    return hub_home() / "hub";
}

std::string stored_token() {
    for (const char * name : { "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN" }) {
        if (const std::string value = environment(name); !value.empty()) {
            return checked_token(value, name);
        }
    }
    const std::string stated = environment("HF_TOKEN_PATH");
    const fs::path    path   = stated.empty() ? hub_home() / "token" : fs::path(stated);
    std::ifstream     file(path);
    std::string       token;
    std::getline(file, token);
    return checked_token(token, path.string());
}

std::string endpoint() {
    std::string url = environment("HF_ENDPOINT");
    if (url.empty()) {
        return "https://huggingface.co";
    }
    if (url.compare(0, 7, "http://") != 0 && url.compare(0, 8, "https://") != 0) {
        throw Error(ErrorKind::usage, "HF_ENDPOINT: " + in_quotes(url) + " is not an http or https address",
                    "e.g. HF_ENDPOINT=https://huggingface.co");
    }
    while (url.back() == '/') {
        url.pop_back();
    }
    return url;
}

bool is_on(const std::string & value) {
    const std::string word = to_lower(value);
    return word == "1" || word == "on" || word == "yes" || word == "true";
}

int timeout() {
    const std::string text    = environment("HF_HUB_DOWNLOAD_TIMEOUT");
    int               seconds = 10;
    if (!text.empty()) {
        const auto result = std::from_chars(text.data(), text.data() + text.size(), seconds);
        if (result.ec != std::errc() || result.ptr != text.data() + text.size() || seconds < 1 || seconds > 3600) {
            throw Error(ErrorKind::usage,
                        "HF_HUB_DOWNLOAD_TIMEOUT: " + in_quotes(text) + " is not a number of seconds from 1 to 3600");
        }
    }
    return seconds;
}

} // namespace

std::string checked_token(const std::string & token, const std::string & what) {
    const size_t first = token.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) {
        return "";
    }
    const std::string bare = token.substr(first, token.find_last_not_of(" \t\r\n") + 1 - first);
    if (bare.size() > 1024 || std::any_of(bare.begin(), bare.end(), [](char c) { return c <= ' ' || c > '~'; })) {
        throw Error(ErrorKind::usage, what + ": not an access token", "a token looks like hf_...");
    }
    return bare;
}

HubSettings hub_settings_from_environment() {
    HubSettings settings;
    settings.cache    = cache_folder();
    settings.endpoint = endpoint();
    settings.token    = stored_token();
    settings.offline  = is_on(environment("HF_HUB_OFFLINE"));
    settings.timeout  = timeout();
    return settings;
}

} // namespace penelope
