// penelope list: the models in the cache.
#include "base/format.h"
#include "commands.h"
#include "hub_session.h"
#include "output.h"

#include <ctime>

namespace penelope {

namespace {

std::string date_text(std::time_t time) {
    std::tm local{};
    char    text[32] = "";
    if (localtime_r(&time, &local) != nullptr) {
        std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
    }
    return text;
}

} // namespace

int cmd_list(const Options & options, Terminal & terminal) {
    const HubSettings        settings = hub_settings(options);
    std::vector<OrderedJson> rows, objects;
    for (const CachedModel & model : list_cached_models(settings)) {
        rows.push_back({ { "name", model.name },
                         { "quant", model.quant },
                         { "size", format_bytes(model.size) + (model.complete ? "" : " (parts are missing)") },
                         { "last used", date_text(model.last_used) } });
        objects.push_back({ { "name", model.name },
                            { "repo", model.repo },
                            { "quant", model.quant },
                            { "files", model.files },
                            { "path", model.path },
                            { "size", model.size },
                            { "complete", model.complete },
                            { "last_used", model.last_used } });
    }
    if (options.flag("json")) {
        terminal.line(
            dump_json(OrderedJson{ { "status", "ok" }, { "cache", settings.cache.string() }, { "models", objects } }));
    } else if (rows.empty()) {
        terminal.tell("no models in " + settings.cache.string() + "; penelope pull USER/REPO[:QUANT] downloads one");
    } else {
        terminal.write(format_table(rows, TableFormat::markdown));
    }
    return 0;
}

} // namespace penelope
