#include "train_options.h"

#include "commands.h"
#include "config_file.h"

#include "train/run_folder.h"
#include "train/setting_table.h"

#include <filesystem>

namespace penelope {

namespace fs = std::filesystem;

Options with_run_config(Options options) {
    const std::string path = (fs::path(options.required("out")) / "config.toml").string();
    if (options.flag("resume") && !fs::exists(path) && !options.given("data")) {
        throw Error(ErrorKind::usage, options.text("out") + ": no run to resume",
                    "check --out, or start a run without --resume");
    }
    if (!options.flag("resume") || !fs::exists(path)) {
        return options;
    }
    const bool by_epochs = options.given("epochs"); // then the number of updates follows from them
    for (const ConfigEntry & entry : read_config_file(path)) {
        if (entry.key == "updates" && by_epochs) {
            continue;
        }
        for (const OptionRow * row : command_options("train")) {
            if (entry.key == row->name) {
                options.set(*row, entry.values, OptionSource::config, path);
            }
        }
    }
    return options;
}

TrainSettings read_train_settings(const Options & options) {
    if (options.given("updates") && options.given("epochs") && options.source("updates") == options.source("epochs")) {
        throw UsageError("--updates and --epochs: exclude each other", "give only one");
    }
    const std::string method = options.required("method");
    TrainSettings     s      = default_settings();
    for (const SettingRow & row : setting_table()) {
        if (row.kind == SettingKind::flag) {
            set_setting(row, s, options.flag(row.name) ? "true" : "false");
        } else if (options.given(row.name)) {
            const std::string value = options.text(row.name);
            set_setting(row, s, value);
            if (std::string(row.name) == "lr" && method != "cot" && value.find(',') == std::string::npos) {
                s.module_lr = s.backbone_lr; // one number: every parameter group, as in torch.optim
            }
        }
    }
    if (options.source("epochs") > options.source("updates")) {
        s.n_updates = 0;
    }
    s.out        = options.required("out");
    s.data       = options.required("data");
    s.model.base = s.shape_path.empty() ? options.required("model") : RunFolder(s.out).base();
    return s;
}

} // namespace penelope
