#include "early_json.h"

#include "config_file.h"
#include "options.h"

#include <cstdlib>

namespace penelope {

namespace {

// Value of the last --NAME=VALUE or --NAME VALUE; "true" for a flag without value.
std::optional<std::string> last_value(const std::vector<std::string> & args, const std::string & name,
                                      bool takes_next) {
    std::optional<std::string> value;
    for (size_t i = 0; i < args.size() && args[i] != "--"; i++) {
        if (args[i].compare(0, name.size() + 1, name + "=") == 0) {
            value = args[i].substr(name.size() + 1);
        } else if (args[i] == name) {
            value = !takes_next ? "true" : i + 1 < args.size() ? args[i + 1] : "";
        }
    }
    return value;
}

std::optional<std::string> environment(const char * name) {
    const char * value = std::getenv(name);
    return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

std::optional<bool> json_in_config(const std::string & path) {
    try {
        for (const ConfigEntry & entry : read_config_file(path)) {
            if (entry.key == "json" && entry.values.size() == 1) {
                return parse_flag(entry.values.front());
            }
        }
    } catch (const std::exception &) {
        // The parser reports the error later.
    }
    return std::nullopt;
}

} // namespace

bool wants_json(const std::vector<std::string> & args) {
    if (const auto flag = last_value(args, "--json", false)) {
        return parse_flag(*flag).value_or(true);
    }
    if (const auto variable = environment("PENELOPE_JSON")) {
        return parse_flag(*variable).value_or(true);
    }
    auto config = last_value(args, "--config", true);
    config      = config ? config : environment("PENELOPE_CONFIG");
    return config && json_in_config(*config).value_or(false);
}

} // namespace penelope
