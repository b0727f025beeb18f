// penelope pull: downloads models and sidecars by name.
#include "commands.h"
#include "hub_session.h"
#include "output.h"

namespace penelope {

int cmd_pull(const Options & options, Terminal & terminal) {
    options.required("name");
    std::vector<RepoName> names;
    for (const std::string & text : options.list("name")) {
        names.push_back(parse_repo_name(text, "pull"));
    }
    const HubSession hub(options, terminal);
    for (const RepoName & name : names) {
        const FetchPlan   plan = hub.plan(name);
        const std::string path = hub.fetch(plan);
        if (!options.flag("json")) {
            terminal.line(path);
            continue;
        }
        uint64_t                 size = 0;
        std::vector<std::string> files;
        for (const RepoFile & file : plan.files) {
            size += file.size;
            files.push_back(file.path);
        }
        terminal.line(dump_json(OrderedJson{ { "status", "ok" },
                                             { "name", repo_name_text(name) },
                                             { "path", path },
                                             { "files", files },
                                             { "commit", plan.commit },
                                             { "size", size },
                                             { "downloaded", plan.bytes_missing() } }));
    }
    return 0;
}

} // namespace penelope
