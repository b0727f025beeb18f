#include "gguf/foreign_file.h"

#include "base/format.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace penelope {

namespace {

using namespace std::string_view_literals;

struct Signature {
    std::string_view start;
    const char *     what;
    const char *     hint;
};

constexpr const char * kConvertHint = "convert the directory it is in: penelope convert DIR -o OUT.gguf";
constexpr const char * kUnpackHint  = "unpack it and give the .gguf file inside";
constexpr const char * kPageHint =
    "the download gave a web page instead of the file: take the link of the file itself (.../resolve/main/FILE), or "
    "penelope pull USER/REPO";

constexpr Signature kSignatures[] = {
    { "PK\x03\x04"sv, "is a zip archive or a PyTorch checkpoint",
      "penelope convert takes a Hugging Face directory with .safetensors files" },
    { "\x80\x02"sv, "is a PyTorch checkpoint",
      "penelope convert takes a Hugging Face directory with .safetensors files" },
    { "\x1f\x8b"sv, "is compressed by gzip", kUnpackHint },
    { "\xfd\x37zXZ"sv, "is compressed by xz", kUnpackHint },
    { "\x28\xb5\x2f\xfd"sv, "is compressed by zstd", kUnpackHint },
    { "lmgg"sv, "is a GGML file of 2023", "get the model as GGUF, or convert it again" },
    { "fmgg"sv, "is a GGML file of 2023", "get the model as GGUF, or convert it again" },
    { "tjgg"sv, "is a GGML file of 2023", "get the model as GGUF, or convert it again" },
    { "\x89HDF"sv, "is an HDF5 file", "penelope convert takes a Hugging Face directory with .safetensors files" },
};

// "size 1234567" of a Git LFS pointer; 0 if there is none.
uint64_t pointer_size(std::string_view text) {
    const size_t at   = text.find("\nsize ");
    uint64_t     size = 0;
    for (size_t i = at == std::string_view::npos ? text.size() : at + 6; i < text.size() && size < (1ull << 60); i++) {
        if (text[i] < '0' || text[i] > '9') {
            break;
        }
        size = size * 10 + uint64_t(text[i] - '0');
    }
    return size;
}

// Eight bytes with the length of a JSON header, then the header.
bool is_safetensors(std::string_view bytes, size_t size) {
    uint64_t length = 0;
    if (bytes.size() < 10) {
        return false;
    }
    std::memcpy(&length, bytes.data(), sizeof length);
    return length >= 2 && length <= size - 8 && bytes[8] == '{';
}

std::string first_word_lower(std::string_view text) {
    const size_t begin = std::min(text.size(), text.find_first_not_of(" \t\r\n\xef\xbb\xbf"));
    return to_lower(text.substr(begin, 16));
}

} // namespace

ForeignFile identify_foreign_file(std::string_view bytes, size_t size) {
    constexpr const char * expected = ", expected a GGUF file";
    if (size == 0) {
        return { std::string("is empty") + expected, "the download or conversion did not finish; get the file again" };
    }
    if (bytes.substr(0, 31) == "version https://git-lfs.github.") {
        return { "is a Git LFS pointer to a file of " + format_bytes(pointer_size(bytes)) + ", not the file itself",
                 "get the file: git lfs pull in its repository, or penelope pull USER/REPO" };
    }
    for (const Signature & signature : kSignatures) {
        if (bytes.substr(0, signature.start.size()) == signature.start) {
            return { std::string(signature.what) + expected, signature.hint };
        }
    }
    if (is_safetensors(bytes, size)) {
        return { std::string("is a safetensors file") + expected, kConvertHint };
    }
    const std::string start = first_word_lower(bytes);
    if (start.compare(0, 9, "<!doctype") == 0 || start.compare(0, 5, "<html") == 0 ||
        start.compare(0, 5, "<?xml") == 0) {
        return { std::string("is a web page (HTML)") + expected, kPageHint };
    }
    if (start.compare(0, 1, "{") == 0) {
        return {
            "is JSON text (" + in_quotes(bytes.substr(0, 60)) + ")" + expected,
            "a server's error message looks like this; get the file again, or convert the directory of a config.json"
        };
    }
    const std::string_view sample = bytes.substr(0, 4096);
    if (std::all_of(sample.begin(), sample.end(), [](char c) { return c == '\0'; })) {
        return { std::string("begins with zeros") + expected, "the download did not finish; get the file again" };
    }
    return { "is not a GGUF file (it does not start with \"GGUF\")",
             "give a .gguf file, or convert the model with penelope convert" };
}

} // namespace penelope
