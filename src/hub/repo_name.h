// Names of models: USER/REPO[:QUANT] as llama.cpp has them, or USER/REPO:FILE.gguf; and which files of a repository
// such a name means.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penelope {

struct RepoName {
    std::string repo;   // "USER/REPO"
    std::string choice; // quantization ("Q8_0", any case) or file ("folder/model.gguf"); "": the default
};

// Throws Error(usage). what: the flag or argument it was given to.
RepoName parse_repo_name(const std::string & text, const std::string & what);

std::string repo_name_text(const RepoName & name); // as it was given

// The quantization in a file's name: "model-Q4_K_M-00001-of-00002.gguf" -> "Q4_K_M"; "" if there is none.
std::string quant_of(std::string_view path);

// True for a .gguf file that is a model or an adapter, not a projector, draft head or importance matrix.
bool is_model_file(std::string_view path);

// Which of these files the choice means: one, or all parts of a split model in order. Without a choice Q4_K_M, else
// Q8_0, else the first. Empty if none fits.
std::vector<std::string> choose_files(std::vector<std::string> paths, const std::string & choice);

// The choices there are, for messages: "Q4_K_M, Q8_0".
std::string choices_text(const std::vector<std::string> & paths);

// The file and, if it is part of a split model, those of the others that are in `paths`, in order.
std::vector<std::string> parts_of(const std::string & path, const std::vector<std::string> & paths);

} // namespace penelope
