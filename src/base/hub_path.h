// Paths inside the cache that huggingface_hub, llama.cpp and this program share:
// CACHE/models--USER--REPO/snapshots/COMMIT/FILE.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penelope {

struct HubPath {
    std::string repo; // "USER/REPO"
    std::string commit;
    std::string file; // may be in folders: "Q8_0/model-00001-of-00002.gguf"
};

// nullopt if the path is not that of a file in such a cache. Does not ask the disk.
std::optional<HubPath> parse_hub_path(const std::string & path);

// "USER/REPO" -> "models--USER--REPO" and back; back is nullopt for other folders.
std::string                repo_folder_name(const std::string & repo);
std::optional<std::string> repo_of_folder(std::string_view folder);

// One "/", parts of [A-Za-z0-9_.-] that neither start nor end with "." or "-", without "--" and "..": the hub's rules.
bool is_repo_id(std::string_view text);

bool is_hex(std::string_view text, size_t length);

} // namespace penelope
