// The general.* keys of a converted file: what it is called, how large it is, under which licence and from which base.
//
// Input: the README.md model card of a directory (its YAML front matter) and the directory's name. Output: FileMetadata
// and the keys. Nothing is invented: a field nobody states is left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penelope {

class GgufReader;
class GgufWriter;

struct FileMetadata {
    std::string              name;
    std::string              description;
    std::string              license; // SPDX or the hub's identifier
    std::string              license_name;
    std::string              license_link;
    std::vector<std::string> base_models; // "organization/name"
    std::vector<std::string> datasets;    // "organization/name"
    std::vector<std::string> tags;
    std::vector<std::string> languages;
};

// Without a name in the card the file gets `fallback_name`, or that of the directory.
FileMetadata read_metadata(const std::string & dir, const std::string & fallback_name = "");

// general.type, .name, .size_label, ... `type` is "model" or "adapter".
void write_metadata(GgufWriter & writer, const FileMetadata & metadata, const std::string & type,
                    uint64_t n_parameters);

// A README.md with the facts of a file that the other files of a directory have no place for; read_metadata() reads it.
std::string model_card(const GgufReader & gguf);

// Where a GGUF file goes: `out`, or inside `out` if that is a directory, under the name such files are shared by, e.g.
// "Llama-3.2-1B-Q8_0.gguf", "Llama-3.2-1B-listops-F32-LoRA.gguf", "SmolLM2-penelope-listops-3.5M-Q8_0.gguf". The size
// stands in it unless the name has one already.
std::string target_path(const std::string & out, const std::string & name, uint64_t n_parameters,
                        const std::string & type, const std::string & kind);

// "1.2B", "135M", "439K": at least two digits, as in names of model files.
std::string size_label(uint64_t n_parameters);

} // namespace penelope
