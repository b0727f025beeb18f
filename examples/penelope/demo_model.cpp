#include "demo_model.h"

#include "base/error.h"
#include "base/log.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "sidecar/sidecar.h"

#include <algorithm>
#include <filesystem>
#include <vector>

namespace penelope {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> gguf_files(const fs::path & folder) {
    std::vector<fs::path> files;
    std::error_code       ignored;
    for (const auto & entry : fs::directory_iterator(folder, ignored)) {
        if (entry.path().extension() == ".gguf") {
            files.push_back(entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

enum class FileKind { base, sidecar, other };

// Unreadable files are skipped.
FileKind kind_of(const fs::path & path) {
    try {
        const GgufReader file = GgufReader::open(path.string());
        return is_sidecar(file)                                                 ? FileKind::sidecar
               : file.find_str(keys::general_type).value_or("model") == "model" ? FileKind::base
                                                                                : FileKind::other;
    } catch (const Error & error) {
        log_debug(error.message());
        return FileKind::other;
    }
}

bool fits(const fs::path & sidecar, const fs::path & base) {
    try {
        check_base(read_sidecar_config(GgufReader::open(sidecar.string())),
                   read_base_info(GgufReader::open(base.string())));
        return true;
    } catch (const Error &) {
        return false;
    }
}

// The first sidecar with a matching backbone; thread models first, controls last.
DemoModel pair_in(const fs::path & folder) {
    std::vector<fs::path> bases, sidecars;
    for (const fs::path & path : gguf_files(folder)) {
        const FileKind kind = kind_of(path);
        if (kind != FileKind::other) {
            (kind == FileKind::sidecar ? sidecars : bases).push_back(path);
        }
    }
    const auto rank = [](const fs::path & path) {
        const std::string name = path.filename().string();
        return name.find("control") != std::string::npos ? 2 : name.find("thread") != std::string::npos ? 0 : 1;
    };
    std::stable_sort(sidecars.begin(), sidecars.end(),
                     [&](const auto & a, const auto & b) { return rank(a) < rank(b); });
    for (const fs::path & sidecar : sidecars) {
        for (const fs::path & base : bases) {
            if (fits(sidecar, base)) {
                return { base.string(), sidecar.string() };
            }
        }
    }
    return {};
}

} // namespace

DemoModel find_demo_model() {
    std::error_code ignored;
    const fs::path  program = fs::read_symlink("/proc/self/exe", ignored);
    for (fs::path folder = program.parent_path(); !folder.empty(); folder = folder.parent_path()) {
        for (const fs::path & place : { folder / "models", folder / "share" / "penelope" / "models" }) {
            const DemoModel found = pair_in(place);
            if (!found.base.empty()) {
                return found;
            }
        }
        if (folder == folder.root_path()) {
            break;
        }
    }
    throw Error(ErrorKind::not_found, "no model given and no bundled demo model found",
                "give one with -m BASE.gguf [--sidecar FILE.gguf]");
}

} // namespace penelope
