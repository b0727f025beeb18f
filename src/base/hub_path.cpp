#include "base/hub_path.h"

#include "base/path.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <vector>

namespace penelope {

namespace {

constexpr std::string_view kPrefix    = "models--";
constexpr std::string_view kSeparator = "--";

bool is_name(std::string_view name) {
    const auto is_mark = [](char c) { return c == '.' || c == '-'; };
    if (name.empty() || name.size() > 96 || is_mark(name.front()) || is_mark(name.back()) ||
        name.find("--") != std::string_view::npos || name.find("..") != std::string_view::npos) {
        return false;
    }
    return std::all_of(name.begin(), name.end(), [&](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || is_mark(c);
    });
}

} // namespace

bool is_repo_id(std::string_view text) {
    const size_t slash = text.find('/');
    return slash != std::string_view::npos && is_name(text.substr(0, slash)) && is_name(text.substr(slash + 1));
}

bool is_hex(std::string_view text, size_t length) {
    return text.size() == length && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string repo_folder_name(const std::string & repo) {
    const size_t slash = repo.find('/');
    return std::string(kPrefix) + repo.substr(0, slash) + std::string(kSeparator) + repo.substr(slash + 1);
}

std::optional<std::string> repo_of_folder(std::string_view folder) {
    if (folder.substr(0, kPrefix.size()) != kPrefix) {
        return std::nullopt;
    }
    folder.remove_prefix(kPrefix.size());
    const size_t separator = folder.find(kSeparator);
    if (separator == std::string_view::npos) {
        return std::nullopt;
    }
    std::string repo =
        std::string(folder.substr(0, separator)) + "/" + std::string(folder.substr(separator + kSeparator.size()));
    return is_repo_id(repo) ? std::optional(std::move(repo)) : std::nullopt;
}

std::optional<HubPath> parse_hub_path(const std::string & path) {
    std::vector<std::string> parts;
    for (const std::filesystem::path & part : absolute_path(path)) {
        parts.push_back(part.string());
    }
    for (size_t i = 0; i + 3 < parts.size(); i++) {
        const std::optional<std::string> repo = repo_of_folder(parts[i]);
        if (repo && parts[i + 1] == "snapshots" && is_hex(parts[i + 2], 40)) {
            HubPath found{ *repo, parts[i + 2], parts[i + 3] };
            for (size_t j = i + 4; j < parts.size(); j++) {
                found.file += "/" + parts[j];
            }
            return found;
        }
    }
    return std::nullopt;
}

} // namespace penelope
