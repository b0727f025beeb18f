#include "train_options.h"

#include "commands.h"
#include "config_file.h"

#include "train/named_settings.h"
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
    options.required("method");
    std::vector<NamedSetting> given;
    for (const SettingRow & row : setting_table()) {
        if (row.kind == SettingKind::flag) {
            given.emplace_back(row.name, options.flag(row.name) ? "true" : "false");
        } else if (options.given(row.name)) {
            given.emplace_back(row.name, options.text(row.name));
        }
    }
    TrainSettings s = named_settings(given);
    if (options.source("epochs") > options.source("updates")) {
        s.n_updates = 0;
    }
    s.out        = options.required("out");
    s.data       = options.required("data");
    s.model.base = s.shape_path.empty() ? options.required("model") : RunFolder(s.out).base();
    return s;
}

} // namespace penelope
