// File names of models split over several GGUF files, as llama-gguf-split gives them: "NAME-00001-of-00003.gguf".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penelope {

struct SplitName {
    std::string prefix; // "folder/NAME"
    int         number; // from 1
    int         count;
};

// nullopt if the name has another form.
std::optional<SplitName> parse_split_name(std::string_view path);

// "NAME-00002-of-00003.gguf"
std::string split_path(const std::string & prefix, int number, int count);

} // namespace penelope
