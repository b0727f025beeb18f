// The settings of a run as config.toml holds them, and which of two runs differ.
#include "support/errors.h"
#include "train/same_settings.h"
#include "train/settings.h"

#include <doctest/doctest.h>

using namespace penelope;
using penelope::test::contains;

namespace {

TrainSettings visible_steps() {
    TrainSettings settings;
    settings.model.method = "cot";
    settings.model.base   = "/base.gguf";
    settings.data         = "/data";
    return settings;
}

} // namespace

TEST_CASE("every text stands on one line, with everything in it") {
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

TEST_CASE("what spares memory is said too") {
    TrainSettings settings = visible_steps();
    CHECK(contains(settings_toml(settings), "\nlow-memory = false\n"));
    settings.model.keep_transposes = false;
    settings.model.recompute       = true;
    CHECK(contains(settings_toml(settings), "\nlow-memory = true\n"));
    CHECK(contains(settings_toml(settings), "\nrecompute = true\n"));
}

TEST_CASE("a setting that only one of two runs has is a difference, but for stages of a run that was made longer") {
    const auto different = [](const char * now, const char * then) { return different_settings(now, then); };
    CHECK(different("{\"seed\":1}", "{\"seed\":1,\"stages_for\":3}").empty());
    CHECK(different("{\"seed\":1}", "{\"seed\":2}") == std::vector<std::string>{ "seed" });
    CHECK(different("{\"seed\":1,\"kv_type\":\"f16\"}", "{\"seed\":1}") == std::vector<std::string>{ "kv_type" });
    CHECK(different("{\"seed\":1}", "{\"seed\":1,\"kv_type\":\"f16\"}") == std::vector<std::string>{ "kv_type" });
}
