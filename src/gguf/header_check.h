// Walks the header of a GGUF file before ggml parses it, and throws an Error at the first thing ggml would abort on,
// allocate without measure for, or silently cut: lengths beyond the file, counts no file can hold, unknown types,
// duplicate names, NUL bytes inside strings, shapes whose size overflows, offsets that do not follow each other, data
// beyond the end. Allocates nothing that the file's own length does not bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace penelope {

// Returns the offset of the tensor data. `path` only serves the messages.
size_t check_gguf_header(const std::string & path, const uint8_t * data, size_t size);

} // namespace penelope
