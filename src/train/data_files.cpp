#include "train/data_files.h"

#include "base/error.h"

#include <filesystem>

namespace penelope {

namespace fs = std::filesystem;

std::string find_split(const std::string & dir, const std::string & split) {
    for (const char * extension : { ".jsonl", ".json", ".csv" }) {
        const fs::path path = fs::path(dir) / (split + extension);
        if (fs::is_regular_file(path)) {
            return path.string();
        }
    }
    return "";
}

std::string get_split(const std::string & dir, const std::string & split) {
    const std::string path = find_split(dir, split);
    if (path.empty()) {
        throw Error(ErrorKind::not_found, dir + ": has no " + split + ".jsonl, .json or .csv",
                    "penelope data split divides a file into such parts, penelope data makes some");
    }
    return path;
}

} // namespace penelope
