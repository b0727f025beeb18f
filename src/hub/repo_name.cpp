#include "hub/repo_name.h"

#include "base/error.h"
#include "base/format.h"
#include "base/hub_path.h"
#include "gguf/split_name.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace penelope {

namespace {

constexpr std::string_view kSuffix = ".gguf";

// In the names of files that go with a model; llama.cpp leaves the same ones out.
constexpr const char * kOtherKinds[] = { "mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-" };

std::string_view file_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

bool is_first_part(const std::string & path) {
    const auto split = parse_split_name(path);
    return !split || split->number == 1;
}

// "Q8_0" is in "model-Q8_0.gguf" and in "Q8_0/model.gguf", "F16" not in "model-BF16.gguf".
bool has_quant(std::string_view path, const std::string & quant) {
    const std::string text = to_upper(path), wanted = to_upper(quant);
    const auto        is_border = [](char c) { return c == '-' || c == '.' || c == '/'; };
    for (size_t at = 0; (at = text.find(wanted, at)) != std::string::npos; at++) {
        const size_t end = at + wanted.size();
        if ((at == 0 || is_border(text[at - 1])) && end < text.size() && is_border(text[end])) {
            return true;
        }
    }
    return false;
}

} // namespace

RepoName parse_repo_name(const std::string & text, const std::string & what) {
    const size_t colon = text.find(':');
    RepoName     name{ text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1) };
    if (!is_repo_id(name.repo) || (colon != std::string::npos && name.choice.empty())) {
        throw Error(ErrorKind::usage, what + ": " + in_quotes(text) + " is not USER/REPO[:QUANT]",
                    "e.g. ggml-org/SmolLM2-135M-Instruct-GGUF:Q8_0; a file on this machine goes to -m");
    }
    return name;
}

std::string repo_name_text(const RepoName & name) {
    return name.repo + (name.choice.empty() ? "" : ":" + name.choice);
}

std::string quant_of(std::string_view path) {
    if (!ends_with(path, kSuffix)) {
        return "";
    }
    const auto        split     = parse_split_name(path);
    const std::string stem      = split ? split->prefix : std::string(path.substr(0, path.size() - kSuffix.size()));
    const size_t      mark      = stem.find_last_of("-./");
    const std::string tag       = mark == std::string::npos ? "" : stem.substr(mark + 1);
    const auto        in_tag    = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    const bool        is_tag    = std::all_of(tag.begin(), tag.end(), in_tag);
    const bool        has_digit = tag.find_first_of("0123456789") != std::string::npos;
    return is_tag && has_digit ? to_upper(tag) : "";
}

bool is_model_file(std::string_view path) {
    const std::string_view name = file_name(path);
    return ends_with(path, kSuffix) &&
           !std::any_of(std::begin(kOtherKinds), std::end(kOtherKinds),
                        [&](const char * kind) { return name.find(kind) != std::string_view::npos; });
}

std::vector<std::string> parts_of(const std::string & path, const std::vector<std::string> & paths) {
    const auto split = parse_split_name(path);
    if (!split) {
        return { path };
    }
    std::vector<std::string> parts;
    for (int number = 1; number <= split->count; number++) {
        const std::string part = split_path(split->prefix, number, split->count);
        if (std::find(paths.begin(), paths.end(), part) != paths.end()) {
            parts.push_back(part);
        }
    }
    return parts;
}

std::vector<std::string> choose_files(std::vector<std::string> paths, const std::string & choice) {
    std::sort(paths.begin(), paths.end());
    if (ends_with(choice, kSuffix)) {
        const bool found = std::find(paths.begin(), paths.end(), choice) != paths.end();
        return found ? parts_of(choice, paths) : std::vector<std::string>{};
    }
    std::vector<std::string> models;
    std::copy_if(paths.begin(), paths.end(), std::back_inserter(models),
                 [](const std::string & path) { return is_model_file(path) && is_first_part(path); });
    for (const std::string & quant :
         choice.empty() ? std::vector<std::string>{ "Q4_K_M", "Q8_0" } : std::vector<std::string>{ choice }) {
        for (const std::string & path : models) {
            if (has_quant(path, quant)) {
                return parts_of(path, paths);
            }
        }
    }
    return choice.empty() && !models.empty() ? parts_of(models.front(), paths) : std::vector<std::string>{};
}

std::string choices_text(const std::vector<std::string> & paths) {
    std::set<std::string> choices;
    for (const std::string & path : paths) {
        if (is_model_file(path) && is_first_part(path)) {
            const std::string quant = quant_of(path);
            choices.insert(quant.empty() ? path : quant);
        }
    }
    return join({ choices.begin(), choices.end() }, ", ");
}

} // namespace penelope
