// Where models by name come from and where they are stored: what huggingface_hub reads from the environment.
#pragma once

#include <filesystem>
#include <string>

namespace penelope {

struct HubSettings {
    std::filesystem::path cache;    // HF_HUB_CACHE, or hub in HF_HOME, or huggingface/hub in XDG_CACHE_HOME or ~/.cache
    std::string           endpoint; // HF_ENDPOINT, without a slash at the end
    std::string           token;    // HF_TOKEN, or the file HF_TOKEN_PATH or token in HF_HOME; "": none
    bool                  offline = false; // HF_HUB_OFFLINE
    int                   timeout = 10;    // seconds without a byte; HF_HUB_DOWNLOAD_TIMEOUT
};

// Throws Error(usage) for values that make no sense.
HubSettings hub_settings_from_environment();

// Throws Error(usage) for a token that cannot stand in an HTTP header. what: where it comes from.
std::string checked_token(const std::string & token, const std::string & what);

} // namespace penelope
