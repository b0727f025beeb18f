// The files a GGUF model is made of: one, or the parts that llama-gguf-split wrote. Opens and checks them; GgufReader
// gives access to what is in them.
#pragma once

#include "base/mapped_file.h"
#include "ggml-cpp.h"
#include "gguf/reader.h"

#include <string>
#include <vector>

namespace penelope {

struct GgufPart {
    MappedFile              file;
    gguf_context_ptr        gguf;
    std::vector<GgufTensor> tensors;
};

// One file; bytes: see GgufReader::open(). Throws Error if it is not a whole GGUF file.
GgufPart open_part(const std::string & path, const ByteView & bytes = {});

// The file, or all parts of the model if it is the first of several. Throws Error that names the part that is missing,
// belongs elsewhere or occurs twice, and the file to give if this is not the first part.
std::vector<GgufPart> open_parts(const std::string & path, const ByteView & bytes = {});

} // namespace penelope
