#include "learn/text_data.h"

#include "base/error.h"
#include "base/format.h"
#include "base/sha256.h"
#include "learn/learn_data.h"
#include "task/question.h"
#include "text/utf8.h"
#include "train/training_data.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr size_t kWindowBytes   = 1024; // of an example
constexpr size_t kFewestWindows = 10;

bool has_text_name(const fs::path & path) {
    const std::string extension = to_lower(path.extension().string());
    return extension == ".txt" || extension == ".md" || extension == ".text";
}

std::vector<fs::path> text_files(const std::string & path) {
    std::vector<fs::path> files;
    if (!fs::is_directory(path)) {
        return { path };
    }
    for (const fs::directory_entry & entry : fs::directory_iterator(path)) {
        if (entry.is_regular_file() && has_text_name(entry.path())) {
            files.push_back(entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::string read_valid_text(const fs::path & path) {
    std::ifstream stream(path, std::ios::binary);
    std::string   text{ std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>() };
    if (!stream.is_open() || stream.bad()) {
        throw Error(ErrorKind::io, path.string() + ": read failed");
    }
    const size_t n_valid = valid_utf8_prefix(text);
    if (n_valid < text.size()) {
        const auto line = std::count(text.begin(), text.begin() + std::ptrdiff_t(n_valid), '\n') + 1;
        throw Error(ErrorKind::format, path.string() + " line " + std::to_string(line) + ": not valid UTF-8",
                    "convert it, e.g. iconv -f latin1 -t utf-8 " + path.filename().string());
    }
    return text;
}

// Where a window that starts at `begin` ends: at the last paragraph, line or word that ends within it.
size_t window_end(const std::string & text, size_t begin) {
    const size_t most = begin + kWindowBytes;
    if (most >= text.size()) {
        return text.size();
    }
    for (const char * mark : { "\n\n", "\n", " " }) {
        const size_t at = text.rfind(mark, most);
        if (at != std::string::npos && at > begin + kWindowBytes / 2) {
            return at + std::string(mark).size();
        }
    }
    return begin + valid_utf8_prefix(text.substr(begin, kWindowBytes));
}

std::vector<Example> windows_of(const std::string & text, const std::string & name) {
    std::vector<Example> windows;
    for (size_t begin = 0; begin < text.size();) {
        const size_t      end  = window_end(text, begin);
        const std::string part = trim(text.substr(begin, end - begin));
        const size_t      word = part.find_first_of(" \n"); // what follows the first word is predicted
        if (word != std::string::npos) {
            Example window;
            window.kind     = ExampleKind::completion;
            window.id       = name + "-" + std::to_string(windows.size());
            window.question = part.substr(0, word);
            window.answer   = part.substr(word);
            windows.push_back(std::move(window));
        }
        begin = end;
    }
    return windows;
}

} // namespace

bool is_plain_text(const std::string & path) {
    if (fs::is_directory(path)) {
        return find_split(path, "train").empty() && !text_files(path).empty();
    }
    return has_text_name(path);
}

LearnData read_text_data(const std::string & path) {
    LearnData data;
    data.is_text = data.by_perplexity = true;
    size_t n_all                      = 0;
    for (const fs::path & file : text_files(path)) {
        std::vector<Example> windows = windows_of(read_valid_text(file), file.stem().string());
        data.sum += sha256_file(file.string());
        n_all += windows.size();
        // The end of each file is held out: windows side by side share a subject.
        const size_t n_held = windows.size() / 10;
        for (size_t i = 0; i < windows.size(); i++) {
            const size_t left = windows.size() - i;
            (left > 2 * n_held ? data.parts.train
             : left > n_held   ? data.parts.valid
                               : data.parts.test)
                .push_back(std::move(windows[i]));
        }
    }
    data.sum = sha256_hex(data.sum);
    if (data.parts.test.empty() || data.parts.valid.empty()) {
        throw Error(ErrorKind::format,
                    path + ": has " + std::to_string(n_all) + " windows of " + std::to_string(kWindowBytes) +
                        " bytes, needs at least " + std::to_string(kFewestWindows),
                    "give more text");
    }
    data.parts.valid.resize(std::min(data.parts.valid.size(), kMostValid));
    data.parts.test.resize(std::min(data.parts.test.size(), kMostTest));
    data.task = { &generic_task(), "plain text" };
    return data;
}

} // namespace penelope
