// What a file is that was given in place of a GGUF file, and what to do about it.
#pragma once

#include <string>
#include <string_view>

namespace penelope {

struct ForeignFile {
    std::string what; // "is a safetensors file, expected a GGUF file"
    std::string hint;
};

// Looks at the first bytes. bytes: all that there are, or at least the first 4 KiB. size: of the file.
ForeignFile identify_foreign_file(std::string_view bytes, size_t size);

} // namespace penelope
