#include "train/same_settings.h"

#include "base/error.h"
#include "base/format.h"
#include "train/data_files.h"

#include <algorithm>

namespace penelope {

namespace {

// As it is, or as it would be called: it may be missing now.
std::string split_file(const std::string & data, const std::string & split) {
    const std::string found = find_split(data, split);
    return found.empty() ? data + "/" + split + ".jsonl" : found;
}

// The file whose checksum a key holds; empty for the keys of values.
std::string file_of(const std::string & key, const TrainSettings & s) {
    return key == "base_sha256"    ? s.model.base
           : key == "init_sha256"  ? "--init " + s.model.init
           : key == "train_sha256" ? split_file(s.data, "train")
           : key == "valid_sha256" ? split_file(s.data, "valid")
                                   : "";
}

std::string flag_of(std::string key) {
    if (key == "lora") {
        return "--lora-rank or --lora-alpha";
    }
    std::replace(key.begin(), key.end(), '_', '-');
    return "--" + key;
}

} // namespace

std::vector<std::string> different_settings(const std::string & now, const std::string & then) {
    const Json               a = parse_json(now, "settings"), b = parse_json(then, "settings of the checkpoint");
    std::vector<std::string> different;
    for (const auto & [key, value] : a.items()) {
        if (!b.contains(key) || b[key] != value) {
            different.push_back(key);
        }
    }
    for (const auto & [key, value] : b.items()) {
        if (!a.contains(key) && key != kStagesKey) {
            different.push_back(key);
        }
    }
    return different;
}

void refuse_settings(const std::vector<std::string> & keys, const TrainSettings & settings, const std::string & what,
                     const std::string & hint) {
    std::vector<std::string> flags, files;
    for (const std::string & key : keys) {
        const std::string file = file_of(key, settings);
        (file.empty() ? flags : files).push_back(file.empty() ? flag_of(key) : file);
    }
    std::vector<std::string> parts;
    if (!files.empty()) {
        parts.push_back("another file than " + join(files, ", "));
    }
    if (!flags.empty()) {
        parts.push_back("another " + join(flags, ", "));
    }
    throw Error(ErrorKind::usage, what + " with " + join(parts, " and "), hint);
}

} // namespace penelope
