// The table of all training settings: name, type, default, limits, help, and what depends on it. The flags and help of
// penelope train, config.toml, the resume check and the table in docs/training.md are generated from it. To add a
// setting, add a field to TrainSettings and a row here.
#pragma once

#include "train/settings.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace penelope {

enum class SettingKind { flag, integer, number, text, choice };

// What depends on a setting; decides whether it may change on --resume.
enum class SettingUse {
    weights, // must not change
    scores,  // validation scores: may change, but scores before and after are not comparable
    files,   // which files are written and when: may change
    none,    // only determines another setting; not recorded
};

// Pointer to the field. A pair is two fields set by one flag: "A,B" for numbers, "S:E" for a range.
using SettingSlot = std::variant<bool *, int *, int64_t *, uint32_t *, uint64_t *, float *, double *, std::string *,
                                 ggml_type *, std::pair<double *, double *>, std::pair<uint32_t *, uint32_t *>>;

struct SettingRow {
    const char * name;    // long flag and key in config.toml; with _ for -, key in the settings JSON of a checkpoint
    const char * aliases; // other names of the flag
    SettingKind  kind;
    const char * value; // placeholder of the value in help
    const char *
        fallback;        // default; "": a text is open, a number as TrainSettings has it; `help` explains what follows
    const char * limits; // numbers: "0..8", either end may be missing; choice: "a|b"
    const char * group;  // heading in help
    SettingUse   use;
    SettingSlot (*slot)(TrainSettings & settings);
    const char * help;
    // Whether the setting applies to a run; if not, it is not recorded. Null: always.
    bool (*applies)(const TrainSettings & settings) = nullptr;
    bool is_path = false; // absolute in config.toml; a checkpoint has the checksum of the file
};

// In the order of help.
const std::vector<SettingRow> & setting_table();
const SettingRow *              find_setting(const std::string & name); // null: unknown

// Settings with every default of the table.
TrainSettings default_settings();

// text: as on the command line; "true" or "false" for a flag. Throws Error(usage) naming the flag if it is not valid.
void set_setting(const SettingRow & row, TrainSettings & settings, const std::string & text);

// A pair is an array of two.
OrderedJson setting_json(const SettingRow & row, const TrainSettings & settings);

// A value of setting_json() as written on the command line.
std::string setting_text(const SettingRow & row, const OrderedJson & value);

// The table of docs/training.md.
std::string settings_markdown();

} // namespace penelope
