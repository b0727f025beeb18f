// penelope train: visible chain of thought, Penelope or Coconut on the examples of a directory.
#include "commands.h"
#include "interrupt.h"
#include "train_options.h"
#include "train_output.h"

#include "base/atomic_file.h"
#include "base/temporary_folder.h"
#include "train/dump_gradients.h"
#include "train/new_backbone.h"
#include "train/trainer.h"

namespace penelope {

namespace {

// --dry-run and --dump-gradients: what a run would do, leaving no trace of it.
int look(TrainSettings settings, const Options & options, const Backend & backend, Terminal & terminal) {
    const TemporaryFolder scratch;
    const std::string     backbone = scratch.file("base.gguf");
    const TemporaryPath   removed_on_signals(backbone);
    if (!settings.new_shape.empty()) {
        write_new_backbone(read_backbone_shape(settings.new_shape), settings.model.seed, backbone);
        settings.model.base = backbone;
    }
    Trainer trainer(settings, backend);
    if (options.given("dump-gradients")) {
        const std::string    path  = options.text("dump-gradients");
        const FirstGradients first = trainer.first_gradients();
        write_gradients(trainer.model(), first.loss, first.scale, path, options.flag("force"));
        show_gradients(first.loss, path, options, terminal);
        return 0;
    }
    show_plan(trainer.plan(), backend, options, terminal);
    return 0;
}

OrderedJson build_json(const Backend & backend) {
    return { { "penelope", PENELOPE_VERSION },
             { "ggml", ggml_version_text() },
             { "device", backend.device().name },
             { "description", backend.device().description },
             { "threads", backend.n_threads() } };
}

// The settings have been looked at before anything is removed: --force replaces the run in the folder.
std::unique_ptr<Trainer> open_run(const TrainSettings & settings, const Options & options, const Backend & backend) {
    const bool      resume = options.flag("resume");
    const RunFolder folder(settings.out);
    const bool      is_new = !settings.new_shape.empty(); // the backbone then lies in the folder
    folder.check(resume, options.flag("force"));
    if (is_new && !(resume && folder.has(folder.base()))) {
        const NewBackbone shape = read_backbone_shape(settings.new_shape);
        folder.create(resume);
        write_new_backbone(shape, settings.model.seed, folder.base());
    }
    auto trainer = std::make_unique<Trainer>(settings, backend);
    if (!is_new || resume) {
        folder.create(resume);
    }
    if (!resume) {
        write_file(folder.config(), settings_toml(trainer->settings()), true);
        write_file(folder.build(), dump_json(build_json(backend), 2) + "\n", true);
    }
    return trainer;
}

} // namespace

int cmd_train(const Options & given, Terminal & terminal) {
    const Options       options  = with_run_config(given);
    const TrainSettings settings = read_train_settings(options);
    const Backend       backend(find_device(options.text("device")), int(options.integer("threads")));
    if (options.flag("dry-run") || options.given("dump-gradients")) {
        return look(settings, options, backend, terminal);
    }

    const std::unique_ptr<Trainer> trainer = open_run(settings, options, backend);
    const InterruptHold            hold(InterruptHold::all_signals);
    TrainEvents                    events = shown_events(terminal, options.integer("log-every"));
    events.stop                           = [] { return interrupt_count() > 0; };
    const TrainOutcome outcome            = trainer->run(events, options.flag("resume"));
    terminal.progress("");
    if (outcome.interrupted) {
        throw Error(ErrorKind::cancelled,
                    "interrupted after update " + std::to_string(outcome.update) + "; everything is saved",
                    "penelope train --resume --out " + settings.out + " continues");
    }
    show_outcome(outcome, options, terminal);
    return 0;
}

} // namespace penelope
