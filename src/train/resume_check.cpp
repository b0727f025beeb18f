#include "train/resume_check.h"

#include "base/error.h"
#include "base/format.h"
#include "train/setting_table.h"
#include "train/training_data.h"

#include <algorithm>

namespace penelope {

namespace {

std::string replaced(std::string text, char from, char to) {
    std::replace(text.begin(), text.end(), from, to);
    return text;
}

const SettingRow * row_of(const std::string & key) {
    return find_setting(replaced(key, '_', '-'));
}

// The file of the split, or its default name if it no longer exists.
std::string split_file(const std::string & data, const std::string & split) {
    const std::string found = find_split(data, split);
    return found.empty() ? data + "/" + split + ".jsonl" : found;
}

// The file a checksum key belongs to; empty for other keys.
std::string file_of(const std::string & key, const TrainSettings & s) {
    return key == "base_sha256"    ? s.model.base
           : key == "init_sha256"  ? "--init " + s.model.init
           : key == "train_sha256" ? split_file(s.data, "train")
           : key == "valid_sha256" ? split_file(s.data, "valid")
                                   : "";
}

} // namespace

OrderedJson settings_json(const TrainSettings & settings, const FileSums & sums, Recorded which) {
    OrderedJson all = OrderedJson::object();
    for (const SettingRow & row : setting_table()) {
        const bool is_recorded = row.use == SettingUse::weights || row.use == SettingUse::scores ||
                                 (row.use == SettingUse::files && which == Recorded::all);
        if (is_recorded && !row.is_path && (!row.applies || row.applies(settings))) {
            all[replaced(row.name, '-', '_')] = setting_json(row, settings);
        }
    }
    all["base_sha256"]  = sums.base;
    all["init_sha256"]  = sums.init;
    all["train_sha256"] = sums.train;
    all["valid_sha256"] = sums.valid;
    return all;
}

std::vector<SettingChange> changed_settings(const std::string & now, const std::string & then) {
    const OrderedJson          a = parse_ordered_json(now, "settings");
    const OrderedJson          b = parse_ordered_json(then, "settings of the checkpoint");
    std::vector<SettingChange> changes;
    for (const auto & [key, value] : a.items()) {
        if (!b.contains(key)) {
            changes.push_back({ key, nullptr, value });
        } else if (b[key] != value) {
            changes.push_back({ key, b[key], value });
        }
    }
    for (const auto & [key, value] : b.items()) {
        if (!a.contains(key) && key != kCurriculumUpdatesKey) {
            changes.push_back({ key, value, nullptr });
        }
    }
    return changes;
}

bool may_change(const SettingChange & change) {
    const SettingRow * row = row_of(change.key);
    return change.key == kRanksKey || change.key == kUpdatesKey ||
           (row && (row->use == SettingUse::scores || row->use == SettingUse::files));
}

bool changes_scores(const SettingChange & change) {
    const SettingRow * row = row_of(change.key);
    // eval-every changes when scores are taken, not what they measure.
    return row && row->use == SettingUse::scores && std::string(row->name) != "eval-every";
}

std::string change_text(const SettingChange & change, const TrainSettings & settings) {
    const std::string file = file_of(change.key, settings);
    if (!file.empty()) {
        return file + " has changed (SHA-256 differs)";
    }
    const SettingRow * row  = row_of(change.key);
    const auto         text = [&](const OrderedJson & value) {
        return value.is_null() ? "not set" : row ? setting_text(*row, value) : dump_json(value);
    };
    return "--" + replaced(change.key, '_', '-') + " was " + text(change.then) + ", now " + text(change.now);
}

void refuse_changes(const std::vector<SettingChange> & changes, const TrainSettings & settings,
                    const std::string & what, const std::string & hint) {
    std::vector<std::string> texts, one_sided; // a key that only one side has mostly follows from another change
    for (const SettingChange & change : changes) {
        (change.then.is_null() || change.now.is_null() ? one_sided : texts).push_back(change_text(change, settings));
    }
    throw Error(ErrorKind::usage, what + ": " + join(texts.empty() ? one_sided : texts, ", "), hint);
}

} // namespace penelope
