#include "convert/metadata.h"

#include "base/format.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/path.h"
#include "base/trim.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "text/utf8.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

namespace penelope {

namespace fs = std::filesystem;

namespace {

std::string trimmed(const std::string & text) {
    std::string out = trim(text);
    if (out.size() >= 2 && (out.front() == '"' || out.front() == '\'') && out.back() == out.front()) {
        out = out.substr(1, out.size() - 2);
    }
    return out;
}

constexpr size_t k_card_bytes     = size_t(1) << 20; // the front matter of a model card is at its head
constexpr size_t k_list_entries   = 64;              // of one field; what follows is left out
constexpr size_t k_max_name_bytes = 255;             // bytes of a file's name that file systems take

using Fields = std::map<std::string, std::vector<std::string>>;

// The subset of YAML that model cards use for the fields read here: "key: value", "key: [a, b]" and "key:" followed by
// "- value" lines. Nested maps are skipped.
Fields parse_front_matter(const std::string & text) {
    Fields             fields;
    std::istringstream lines(text);
    std::string        line;
    if (!std::getline(lines, line) || trimmed(line) != "---") {
        return fields;
    }
    std::string key;
    const auto  add = [&](const std::string & value) {
        if (fields[key].size() < k_list_entries) {
            fields[key].push_back(value);
        }
    };
    while (std::getline(lines, line) && trimmed(line) != "---") {
        const size_t start = line.find_first_not_of(' ');
        if (start == std::string::npos || line[start] == '#') {
            continue;
        }
        if (line.compare(start, 2, "- ") == 0) {
            if (!key.empty() && line.find(": ", start) == std::string::npos) {
                add(trimmed(line.substr(start + 2)));
            }
            continue;
        }
        const size_t colon = line.find(':');
        if (start != 0 || colon == std::string::npos) {
            key.clear();
            continue;
        }
        key               = trimmed(line.substr(0, colon));
        std::string value = trimmed(line.substr(colon + 1));
        if (value.size() >= 2 && value.front() == '[' && value.back() == ']') {
            for (const std::string & item : split(value.substr(1, value.size() - 2), ',')) {
                add(trimmed(item));
            }
        } else if (!value.empty() && value != "|" && value != ">") {
            add(value);
        }
    }
    return fields;
}

std::string first(const Fields & fields, const char * key) {
    const auto it = fields.find(key);
    return it == fields.end() || it->second.empty() ? "" : it->second[0];
}

std::vector<std::string> all(const Fields & fields, const char * key) {
    const auto it = fields.find(key);
    return it == fields.end() ? std::vector<std::string>() : it->second;
}

void set_if(GgufWriter & writer, const char * key, const std::string & value) {
    if (!value.empty()) {
        writer.set_str(key, value);
    }
}

// "organization/name" entries: their number, and name, organization and repo_url of each under the key of its index.
void write_sources(GgufWriter & writer, const char * count_key, std::string (*key)(int, std::string_view),
                   const std::string & url, const std::vector<std::string> & sources) {
    if (sources.empty()) {
        return;
    }
    writer.set_u32(count_key, uint32_t(sources.size()));
    for (size_t i = 0; i < sources.size(); i++) {
        const size_t slash = sources[i].find('/');
        writer.set_str(key(int(i), "name"), slash == std::string::npos ? sources[i] : sources[i].substr(slash + 1));
        if (slash != std::string::npos && sources[i].find('/', slash + 1) == std::string::npos) {
            writer.set_str(key(int(i), "organization"), sources[i].substr(0, slash));
            writer.set_str(key(int(i), "repo_url"), url + sources[i]);
        }
    }
}

// Whether one of the parts between '-', '_' and '.' is a number of parameters: "1B", "0.5B", "1_7b".
bool states_size(const std::string & name) {
    const auto is_digit     = [&](size_t i) { return i < name.size() && name[i] >= '0' && name[i] <= '9'; };
    const auto is_unit_seed = [&](size_t i, const char * of) {
        return i < name.size() && std::strchr(of, name[i]) != nullptr;
    };
    for (size_t start = 0; start < name.size(); start++) {
        if (!is_digit(start) || (start > 0 && !is_unit_seed(start - 1, "-_."))) {
            continue;
        }
        size_t i = start;
        while (is_digit(i)) {
            i++;
        }
        if (is_unit_seed(i, "._") && is_digit(i + 1)) {
            i++;
            while (is_digit(i)) {
                i++;
            }
        }
        if (is_unit_seed(i, "KMBTkmbt") && (i + 1 == name.size() || is_unit_seed(i + 1, "-_."))) {
            return true;
        }
    }
    return false;
}

} // namespace

FileMetadata read_metadata(const std::string & dir, const std::string & fallback_name) {
    FileMetadata   metadata;
    const fs::path root = absolute_directory(dir);
    metadata.name       = fallback_name.empty() ? root.filename().string() : fallback_name;

    if (!fs::exists(root / "README.md")) {
        return metadata;
    }
    const MappedFile  card   = MappedFile::open((root / "README.md").string());
    const size_t      size   = std::min(card.size(), k_card_bytes);
    const Fields      fields = parse_front_matter(std::string(reinterpret_cast<const char *>(card.data()), size));
    const std::string name   = first(fields, "model_name");
    metadata.name            = name.empty() ? metadata.name : name;
    metadata.license         = first(fields, "license");
    metadata.license_name    = first(fields, "license_name");
    metadata.license_link    = first(fields, "license_link");
    metadata.base_models     = all(fields, "base_model");
    metadata.datasets        = all(fields, "datasets");
    metadata.tags            = all(fields, "tags");
    metadata.languages       = all(fields, "language");
    return metadata;
}

void write_metadata(GgufWriter & writer, const FileMetadata & metadata, const std::string & type,
                    uint64_t n_parameters) {
    writer.set_str(keys::general_type, type);
    set_if(writer, keys::general_name, metadata.name);
    set_if(writer, keys::general_description, metadata.description);
    writer.set_str(keys::general_size_label, size_label(n_parameters));
    set_if(writer, keys::general_license, metadata.license);
    set_if(writer, keys::general_license_name, metadata.license_name);
    set_if(writer, keys::general_license_link, metadata.license_link);
    write_sources(writer, keys::general_base_model_count, keys::general_base_model, "https://huggingface.co/",
                  metadata.base_models);
    write_sources(writer, keys::general_dataset_count, keys::general_dataset, "https://huggingface.co/datasets/",
                  metadata.datasets);
    if (!metadata.tags.empty()) {
        writer.set_str_array(keys::general_tags, metadata.tags);
    }
    if (!metadata.languages.empty()) {
        writer.set_str_array(keys::general_languages, metadata.languages);
    }
}

std::string model_card(const GgufReader & gguf) {
    std::string text = "---\n";
    const auto  line = [&](const char * field, const char * key) {
        if (const auto value = gguf.find_str(key); value && value->find('\n') == std::string::npos) {
            text += std::string(field) + ": " + dump_json(Json(*value)) + "\n";
        }
    };
    line("model_name", keys::general_name);
    line("license", keys::general_license);
    line("license_name", keys::general_license_name);
    line("license_link", keys::general_license_link);
    const uint32_t n_base = std::min(gguf.find_u32(keys::general_base_model_count).value_or(0), 16u);
    for (uint32_t i = 0; i < n_base; i++) {
        const auto organization = gguf.find_str(keys::general_base_model(int(i), "organization"));
        const auto name         = gguf.find_str(keys::general_base_model(int(i), "name"));
        if (name && name->find('\n') == std::string::npos) {
            text += i == 0 ? "base_model:\n" : "";
            text += "- " + (organization ? *organization + "/" : "") + *name + "\n";
        }
    }
    return text + "---\n";
}

std::string target_path(const std::string & out, const std::string & name, uint64_t n_parameters,
                        const std::string & type, const std::string & kind) {
    if (!fs::is_directory(out)) {
        return out;
    }
    std::string file = name.empty() ? kind : name;
    for (char & c : file) {
        if (static_cast<unsigned char>(c) <= ' ' || c == '/' || c == '\\' || c == ':') {
            c = '-';
        }
    }
    const std::string end = (states_size(file) ? "" : "-" + size_label(n_parameters)) + "-" + type +
                            (kind == "lora" ? "-LoRA" : "") + ".gguf";
    if (file.size() > k_max_name_bytes - end.size()) {
        file.resize(valid_utf8_prefix(std::string_view(file).substr(0, k_max_name_bytes - end.size())));
    }
    return (fs::path(out) / (file + end)).string();
}

std::string size_label(uint64_t n_parameters) {
    struct Unit {
        double       size;
        const char * letter;
    };
    constexpr Unit units[] = { { 1e12, "T" }, { 1e9, "B" }, { 1e6, "M" }, { 1e3, "K" } };
    const double   n       = double(n_parameters);
    Unit           unit    = units[3];
    for (const auto & candidate : units) {
        if (n > candidate.size) {
            unit = candidate;
            break;
        }
    }
    const double scaled = n / unit.size;
    char         text[32];
    std::snprintf(text, sizeof text, std::lround(scaled) >= 10 ? "%.0f%s" : "%.1f%s", scaled, unit.letter);
    return text;
}

} // namespace penelope
