#include "train/open_run.h"

#include "base/json.h"
#include "graph/device.h"
#include "train/random_backbone.h"

namespace penelope {

namespace {

OrderedJson build_json(const Backend & backend) {
    return { { "penelope", PENELOPE_VERSION },
             { "ggml", ggml_version_text() },
             { "device", backend.device().name },
             { "description", backend.device().description },
             { "threads", backend.n_threads() } };
}

OpenRun open_on_root(const TrainSettings & settings, const OpenRunOptions & options, const Backend & backend,
                     Collective & ranks) {
    const auto [resume, force] = options;
    const bool      is_new     = !settings.shape_path.empty(); // the random backbone is then stored in the run folder
    const RunFolder folder(settings.out);
    OpenRun         run;
    folder.check(resume, force);
    if (is_new && !(resume && folder.has(folder.base()))) {
        const NewBackbone made = read_new_backbone(settings.shape_path, settings.data);
        run.hold               = folder.create(resume, force);
        run.hold->remove_on_failure(folder.base());
        write_random_backbone(made.shape, settings.model.seed, folder.base(), made.vocabulary);
    }
    run.trainer = std::make_unique<Trainer>(settings, backend, ranks);
    if (!run.hold) {
        run.hold = folder.create(resume, force);
    }
    if (!resume) {
        run.hold->remove_on_failure(folder.config());
        run.hold->remove_on_failure(folder.build());
        write_file(folder.config(), settings_toml(run.trainer->settings()), true);
        write_file(folder.build(), dump_json(build_json(backend), 2) + "\n", true);
    }
    return run;
}

OpenRun join_root(TrainSettings settings, const Backend & backend, Collective & ranks) {
    OpenRun run;
    if (!settings.shape_path.empty()) {
        run.scratch            = std::make_unique<TemporaryDirectory>();
        settings.model.base    = run.scratch->file("base.gguf");
        run.scratch_base       = TemporaryPath(settings.model.base);
        const NewBackbone made = read_new_backbone(settings.shape_path, settings.data);
        write_random_backbone(made.shape, settings.model.seed, settings.model.base, made.vocabulary);
    }
    run.trainer = std::make_unique<Trainer>(settings, backend, ranks);
    return run;
}

} // namespace

OpenRun open_run(const TrainSettings & settings, const OpenRunOptions & options, const Backend & backend,
                 Collective & ranks) {
    return ranks.is_root() ? open_on_root(settings, options, backend, ranks) : join_root(settings, backend, ranks);
}

} // namespace penelope
