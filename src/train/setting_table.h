// The one table of training settings. Flags and help of penelope train, config.toml, the settings a checkpoint is
// compared by and the table of docs/training.md come from its rows: a new setting is a field of TrainSettings and a
// row.
#pragma once

#include "train/settings.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace penelope {

enum class SettingKind { flag, integer, number, text, choice };

// What depends on a setting, and so what may change when a run is resumed.
enum class SettingUse {
    weights, // has to stay as it was
    scores,  // of validations: may change, but scores before and after it are of different things
    files,   // what is written, and when: may change
    none,    // only says what another setting is to be: not recorded
};

// Where a value stands. Pairs are two fields that one flag sets: "A,B" for numbers, "S:E" for a range.
using SettingSlot = std::variant<bool *, int *, int64_t *, uint32_t *, uint64_t *, float *, double *, std::string *,
                                 ggml_type *, std::pair<double *, double *>, std::pair<uint32_t *, uint32_t *>>;

struct SettingRow {
    const char * name;    // long flag and key of config.toml; with _ for - the key of the settings in a checkpoint
    const char * aliases; // other spellings of the flag
    SettingKind  kind;
    const char * value; // stands for the value in help
    const char *
        fallback;        // default; "": a text is open, a number as TrainSettings has it; `help` explains what follows
    const char * limits; // numbers: "0..8", either end may be missing; choice: "a|b"
    const char * group;  // heading in help
    SettingUse   use;
    SettingSlot (*slot)(TrainSettings & settings);
    const char * help;
    // Whether it means something to a run; else it is recorded nowhere. Null: always.
    bool (*applies)(const TrainSettings & settings) = nullptr;
    bool is_path = false; // absolute in config.toml; of the file's contents a checkpoint has the checksum
};

// In the order of help.
const std::vector<SettingRow> & setting_table();
const SettingRow *              find_setting(const std::string & name); // null: there is none

// Settings with every default of the table.
TrainSettings default_settings();

// text: as on the command line, "true" or "false" for a flag. Throws Error(usage) naming the flag when it is no value
// of this kind.
void set_setting(const SettingRow & row, TrainSettings & settings, const std::string & text);

// A pair is an array of two.
OrderedJson setting_json(const SettingRow & row, const TrainSettings & settings);

// A value of setting_json() as one would write it on the command line.
std::string setting_text(const SettingRow & row, const OrderedJson & value);

// The table of docs/training.md.
std::string settings_markdown();

} // namespace penelope
