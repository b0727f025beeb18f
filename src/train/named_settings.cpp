#include "train/named_settings.h"

#include "base/error.h"
#include "base/format.h"
#include "base/nearest_name.h"
#include "train/setting_table.h"

namespace penelope {

namespace {

Error unknown_setting(const std::string & name) {
    std::vector<std::string> known;
    for (const SettingRow & row : setting_table()) {
        known.emplace_back(row.name);
    }
    const std::string nearest = nearest_name(name, known);
    return Error(ErrorKind::usage, "--" + name + ": unknown setting",
                 nearest.empty() ? "settings: " + join(known, ", ") : "did you mean --" + nearest + "?");
}

} // namespace

TrainSettings named_settings(const std::vector<NamedSetting> & given) {
    TrainSettings settings   = default_settings();
    bool          has_one_lr = false;
    for (const auto & [name, text] : given) {
        const SettingRow * row = find_setting(name);
        if (row == nullptr) {
            throw unknown_setting(name);
        }
        set_setting(*row, settings, text);
        if (name == "lr") {
            has_one_lr = text.find(',') == std::string::npos;
        }
    }
    if (has_one_lr && settings.model.method != "cot") {
        settings.module_lr = settings.backbone_lr; // one number: every parameter group, as in torch.optim
    }
    return settings;
}

} // namespace penelope
