// penelope rm: removes models from the cache.
#include "base/format.h"
#include "commands.h"
#include "hub/remove.h"
#include "hub_session.h"
#include "output.h"

namespace penelope {

int cmd_rm(const Options & options, Terminal & terminal) {
    options.required("name");
    std::vector<RepoName> names;
    for (const std::string & text : options.list("name")) {
        names.push_back(parse_repo_name(text, "rm"));
    }
    const HubSettings settings = hub_settings(options);
    for (const RepoName & name : names) {
        const Removed removed = remove_cached(settings, name);
        if (options.flag("json")) {
            terminal.line(dump_json(OrderedJson{ { "status", "ok" },
                                                 { "name", repo_name_text(name) },
                                                 { "files", removed.files },
                                                 { "freed", removed.bytes } }));
            continue;
        }
        for (const std::string & file : removed.files) {
            terminal.line("removed " + name.repo + "/" + file);
        }
        terminal.line(format_bytes(removed.bytes) + " freed");
    }
    return 0;
}

} // namespace penelope
