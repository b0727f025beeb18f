#include "learn/run_files.h"

#include "base/error.h"
#include "convert/convert.h"

#include <filesystem>

namespace penelope {

namespace fs = std::filesystem;

namespace {

LearnStage stage_of(BestFile best) {
    return best == BestFile::latent    ? LearnStage::latent
           : best == BestFile::control ? LearnStage::control
                                       : LearnStage::visible;
}

// For a command line: quoted where the shell would split it.
std::string shell_word(const std::string & text) {
    const bool is_plain = text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                                 "-_./+=:,@%") == std::string::npos;
    if (is_plain && !text.empty()) {
        return text;
    }
    std::string quoted = "'";
    for (char c : text) {
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return quoted + "'";
}

} // namespace

std::string RunFiles::file(const std::string & name) const {
    return (fs::path(out_) / name).string();
}

void RunFiles::set_start(LearnStage stage, TrainSettings & settings) const {
    settings.model.base = base_;
    if (stage == LearnStage::visible) {
        return;
    }
    const bool        after_bridge                         = stage != LearnStage::bridge && has_bridge_;
    const LearnStage  before                               = after_bridge ? LearnStage::bridge : LearnStage::visible;
    const std::string model                                = (fs::path(folder(before)) / "model.gguf").string();
    (is_full_ ? settings.model.base : settings.model.init) = model;
}

ModelFiles RunFiles::stage_files(LearnStage stage) const {
    const fs::path    dir   = folder(stage);
    const std::string model = (dir / "model.gguf").string();
    if (stage == LearnStage::visible || stage == LearnStage::bridge) {
        return is_full_ ? ModelFiles{ model, "", "" } : ModelFiles{ base_, "", model };
    }
    const bool has_halting = stage == LearnStage::latent && fs::exists(halting_sidecar());
    return { is_full_ ? (dir / "backbone.gguf").string() : base_, has_halting ? halting_sidecar() : model, "" };
}

void RunFiles::write_model(BestFile best) const {
    if (best == BestFile::base) {
        fs::remove(model());
        return;
    }
    const ModelFiles files = stage_files(stage_of(best));
    if (is_full_ && !files.sidecar.empty()) {
        ExportOptions bundle;
        bundle.in_path   = files.sidecar;
        bundle.base_path = files.base;
        bundle.out_path  = model();
        bundle.as        = "bundle";
        bundle.force     = true;
        export_sidecar(bundle);
        return;
    }
    const std::string & source = !files.sidecar.empty() ? files.sidecar : !files.lora.empty() ? files.lora : files.base;
    const std::string   temp   = model() + ".part";
    std::error_code     error;
    fs::copy_file(source, temp, fs::copy_options::overwrite_existing, error);
    if (!error) {
        fs::rename(temp, model(), error);
    }
    if (error) {
        throw Error(ErrorKind::io, model() + ": cannot write: " + error.message());
    }
}

std::vector<std::string> RunFiles::commands(BestFile best) const {
    const std::string base = shell_word(base_), own = shell_word(model());
    if (best == BestFile::base) {
        return { "penelope chat -m " + base, "penelope serve -m " + base };
    }
    const bool        has_steps = best == BestFile::latent || best == BestFile::control;
    const std::string which = is_full_ ? "-m " + own : "-m " + base + (has_steps ? " --sidecar " : " --lora ") + own;
    std::vector<std::string> lines{
        "penelope chat " + which,
        "penelope serve " + which,
        "penelope quantize " + own + " " + shell_word(file("model-Q8_0.gguf")) + " Q8_0",
    };
    if (!is_full_) {
        lines.push_back("penelope export " + own + " -m " + base + " -o " + shell_word(file("share.gguf")) + " --as " +
                        (has_steps ? "bundle" : "merged"));
    }
    return lines;
}

void RunFiles::remove_all() const {
    for (const std::string & path :
         { state(), data(), new_backbone(), scores(), scratch(), model(), report(), folder(LearnStage::visible),
           folder(LearnStage::bridge), folder(LearnStage::latent), folder(LearnStage::control) }) {
        std::error_code error;
        fs::remove_all(path, error);
        if (error) {
            throw Error(ErrorKind::io, path + ": cannot remove: " + error.message());
        }
    }
}

} // namespace penelope
