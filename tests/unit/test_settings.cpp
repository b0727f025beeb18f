// The table of settings, and what is made from it: config.toml, what a checkpoint records, and which changes a run that
// is resumed may have.
#include "support/errors.h"
#include "train/named_settings.h"
#include "train/resume_check.h"
#include "train/setting_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace penelope;
using penelope::test::contains;
using penelope::test::error_of;

namespace {

TrainSettings visible_steps() {
    TrainSettings settings = default_settings();
    settings.model.method  = "cot";
    settings.model.base    = "/base.gguf";
    settings.data          = "/data";
    return settings;
}

} // namespace

TEST_CASE("every string is written on one line, completely") {
    TrainSettings settings                 = visible_steps();
    settings.model.sidecar.prompt_template = "\n'''{question}\n'''\nrate = 0.10000000000000000555\n";
    settings.model.sidecar.answer_prefix   = "it's \"\"\"\\ ";
    settings.name                          = "0.12345678901234567890";
    const std::string toml                 = settings_toml(settings);
    CHECK(contains(toml, "\nprompt-template = \"\\n'''{question}\\n'''\\nrate = 0.10000000000000000555\\n\"\n"));
    CHECK(contains(toml, "answer-prefix = \"it's \\\"\\\"\\\"\\\\ \"\n"));
    CHECK(contains(toml, "\nname = \"0.12345678901234567890\"\n"));
    CHECK(contains(toml, "\nwarmup = 0.05\n"));
}

TEST_CASE("--low-memory and --recompute are recorded") {
    TrainSettings settings = visible_steps();
    CHECK(contains(settings_toml(settings), "\nlow-memory = false\n"));
    settings.low_memory      = true;
    settings.model.recompute = true;
    CHECK(contains(settings_toml(settings), "\nlow-memory = true\n"));
    CHECK(contains(settings_toml(settings), "\nrecompute = true\n"));
}

namespace {

const FileSums kSums{ "b", "i", "t", "v" };

std::string recorded(const TrainSettings & settings) {
    return dump_json(settings_json(settings, kSums, Recorded::with_model));
}

// A value that differs from what the row has.
std::string another_value(const SettingRow & row, const TrainSettings & settings) {
    const std::string now = setting_text(row, setting_json(row, settings));
    switch (row.kind) {
        case SettingKind::flag: return now == "true" ? "false" : "true";
        case SettingKind::integer: return now == "1" ? "2" : "1";
        case SettingKind::number: return now == "0.5" ? "0.25" : "0.5";
        case SettingKind::choice: {
            const std::string choices = row.limits;
            const std::string first   = choices.substr(0, choices.find('|'));
            return first == now ? choices.substr(choices.rfind('|') + 1) : first;
        }
        case SettingKind::text: break;
    }
    return std::string(row.name) == "interval" ? "1:2" : std::string(row.name) == "lr" ? "0.5,0.25" : "another";
}

} // namespace

TEST_CASE("names of settings are different, and each default is a value of its setting") {
    std::set<std::string> names;
    for (const SettingRow & row : setting_table()) {
        CAPTURE(row.name);
        CHECK(names.insert(row.name).second);
        if (*row.fallback != '\0') {
            TrainSettings settings;
            set_setting(row, settings, row.fallback);
            CHECK(setting_json(row, settings) == setting_json(row, default_settings()));
        }
    }
    CHECK(default_settings().warmup == 0.05);
    CHECK(default_settings().model.dropout == 0.05f);
    CHECK(default_settings().validation.limit == 200);
}

TEST_CASE("every setting can be set, reads back as it was set and moves no other one") {
    for (const char * method : { "penelope", "codi" }) {
        TrainSettings settings = default_settings();
        settings.model.method  = method;
        for (const SettingRow & row : setting_table()) {
            CAPTURE(row.name);
            TrainSettings changed = settings;
            set_setting(row, changed, another_value(row, settings));
            for (const SettingRow & other : setting_table()) {
                CAPTURE(other.name);
                CHECK((setting_json(other, changed) != setting_json(other, settings)) == (&other == &row));
            }
        }
    }
}

TEST_CASE("values that are none are refused under the name of their flag") {
    for (const auto & [name, text] :
         { std::pair("interval", "1-3"), std::pair("interval", "7"), std::pair("interval", ":"),
           std::pair("lr", "1e-4,"), std::pair("lr", "nan,1"), std::pair("lr", "1;2"), std::pair("clip", "-1"),
           std::pair("clip", "inf"), std::pair("batch-size", "x"), std::pair("kv-type", "f31"),
           std::pair("full", "maybe") }) {
        CAPTURE(name);
        CAPTURE(text);
        TrainSettings settings = default_settings();
        const Error   error    = error_of([&] { set_setting(*find_setting(name), settings, text); });
        CHECK(error.kind == ErrorKind::usage);
        CHECK(contains(error.message(), std::string("--") + name + ": '" + text + "' "));
    }
}

TEST_CASE("a checkpoint records every setting that touches weights or scores") {
    for (const SettingRow & row : setting_table()) {
        CAPTURE(row.name);
        TrainSettings settings = default_settings();
        settings.model.method  = std::string(row.name) == "projection-width" ? "codi" : "penelope";
        TrainSettings changed  = settings;
        set_setting(row, changed, another_value(row, settings));
        const std::vector<SettingChange> changes = changed_settings(recorded(changed), recorded(settings));
        const bool is_recorded = (row.use == SettingUse::weights || row.use == SettingUse::scores) && !row.is_path;
        REQUIRE(changes.empty() == !is_recorded);
        if (!is_recorded) {
            continue;
        }
        const auto own = std::find_if(changes.begin(), changes.end(), [&](const SettingChange & change) {
            return contains(change_text(change, settings), std::string("--") + row.name + " was ");
        });
        REQUIRE(own != changes.end());
        CHECK(may_change(*own) == (row.use == SettingUse::scores || std::string(row.name) == "updates"));
    }
}

TEST_CASE("settings that do not touch the weights may change when a run is resumed, all others not") {
    const std::set<std::string> free{ "match",   "eval-every", "eval-limit", "predict",
                                      "kv-type", "name",       "save-every", "keep-checkpoints" };
    for (const SettingRow & row : setting_table()) {
        CAPTURE(row.name);
        CHECK((row.use == SettingUse::scores || row.use == SettingUse::files) == (free.count(row.name) > 0));
    }
    CHECK(find_setting("low-memory")->use == SettingUse::weights);
}

TEST_CASE("changes are told with both values") {
    TrainSettings then              = default_settings();
    then.model.method               = "penelope";
    TrainSettings now               = then;
    now.clip                        = 0.5;
    now.batch_size                  = 3;
    now.model.sidecar.answer_prefix = "A: ";
    const Error error               = error_of(
        [&] { refuse_changes(changed_settings(recorded(now), recorded(then)), now, "cannot resume", "hint"); });
    CHECK(error.kind == ErrorKind::usage);
    CHECK(error.message() ==
          "cannot resume: --batch-size was 0, now 3, --clip was 1.0, now 0.5, --answer-prefix was '', now 'A: '");
    // A change of method takes others with it; what it is itself is said.
    now               = then;
    now.model.method  = "cot";
    const Error other = error_of(
        [&] { refuse_changes(changed_settings(recorded(now), recorded(then)), now, "cannot resume", "hint"); });
    CHECK(other.message() == "cannot resume: --method was penelope, now cot");
    const Error file = error_of([&] {
        refuse_changes({ { "base_sha256", "x", "y" } }, visible_steps(), "cannot resume", "hint");
    });
    CHECK(file.message() == "cannot resume: /base.gguf has changed (SHA-256 differs)");
}

TEST_CASE("a setting that only one of two runs has is a difference, but for stages of a run that was made longer") {
    const auto different = [](const char * now, const char * then) {
        std::vector<std::string> keys;
        for (const SettingChange & change : changed_settings(now, then)) {
            keys.push_back(change.key);
        }
        return keys;
    };
    CHECK(different("{\"seed\":1}", "{\"seed\":1,\"curriculum_updates\":3}").empty());
    CHECK(different("{\"seed\":1}", "{\"seed\":2}") == std::vector<std::string>{ "seed" });
    CHECK(different("{\"seed\":1,\"kv_type\":\"f16\"}", "{\"seed\":1}") == std::vector<std::string>{ "kv_type" });
    CHECK(different("{\"seed\":1}", "{\"seed\":1,\"kv_type\":\"f16\"}") == std::vector<std::string>{ "kv_type" });
}

TEST_CASE("settings by name: the last value counts, an unknown name gets the nearest one") {
    const TrainSettings settings =
        named_settings({ { "method", "penelope" }, { "batch-size", "3" }, { "batch-size", "5" }, { "lr", "1e-3" } });
    CHECK(settings.batch_size == 5);
    CHECK(settings.backbone_lr == 1e-3);
    CHECK(settings.module_lr == 1e-3); // one rate for every group
    CHECK(named_settings({ { "method", "penelope" }, { "lr", "1e-3,2e-3" } }).module_lr == 2e-3);
    CHECK(named_settings({ { "lr", "1e-3" }, { "method", "cot" } }).module_lr == 0); // visible steps have no modules

    const Error misspelt = error_of([] { named_settings({ { "step-los", "1" } }); });
    CHECK(misspelt.kind == ErrorKind::usage);
    CHECK(contains(misspelt.message(), "--step-los: unknown setting"));
    CHECK(misspelt.hint == "did you mean --step-loss?");
    CHECK(contains(error_of([] { named_settings({ { "zzzzzzzz", "1" } }); }).hint, "settings: method, "));
    const auto message = [](const char * name, const char * text) {
        return error_of([&] { named_settings({ { name, text } }); }).message();
    };
    CHECK(message("batch-size", "many") == "--batch-size: 'many' is not a whole number");
    CHECK(message("batch-size", "5000") == "--batch-size: '5000' must be between 0 and 4096");
    CHECK(message("dropout", "nan") == "--dropout: 'nan' is not a finite number");
    CHECK(message("method", "magic") == "--method: 'magic' is not one of cot, penelope, coconut, codi");
    CHECK(message("full", "perhaps") == "--full: 'perhaps' is not true or false");
    CHECK(message("interval", "3") == "--interval: '3' is not two numbers with ':' between");
}
