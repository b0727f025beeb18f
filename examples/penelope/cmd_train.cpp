// penelope train: visible chain of thought, Penelope, Coconut or CODI on the examples of a directory.
#include "commands.h"
#include "interrupt.h"
#include "train_options.h"
#include "train_output.h"

#include "base/atomic_file.h"
#include "base/log.h"
#include "base/temporary_directory.h"
#include "mpi/join_ranks.h"
#include "train/dump_gradients.h"
#include "train/random_backbone.h"
#include "train/trainer.h"

#include <optional>

namespace penelope {

namespace {

// --dry-run and --dump-gradients: nothing is written to the run folder.
void preview(TrainSettings settings, const Options & options, const Backend & backend, Terminal & terminal) {
    const TemporaryDirectory scratch;
    const std::string        backbone = scratch.file("base.gguf");
    const TemporaryPath      removed_on_signals(backbone);
    if (!settings.shape_path.empty()) {
        write_random_backbone(read_backbone_shape(settings.shape_path), settings.model.seed, backbone);
        settings.model.base = backbone;
    }
    const std::unique_ptr<Collective> one = single_process();
    Trainer                           trainer(settings, backend, *one);
    terminal.tell(task_line(trainer.task()));
    if (options.given("dump-gradients")) {
        const std::string    path  = options.text("dump-gradients");
        const FirstGradients first = trainer.first_gradients();
        write_gradients(trainer.model(), first.loss, first.scale, path, options.flag("force"));
        show_gradients(first.loss, path, options, terminal);
        return;
    }
    show_plan(trainer.plan(), backend, options, terminal);
}

OrderedJson build_json(const Backend & backend) {
    return { { "penelope", PENELOPE_VERSION },
             { "ggml", ggml_version_text() },
             { "device", backend.device().name },
             { "description", backend.device().description },
             { "threads", backend.n_threads() } };
}

// Objects that exist as long as the training runs.
struct Run {
    std::unique_ptr<RunGuard>           hold;    // on rank 0
    std::unique_ptr<TemporaryDirectory> scratch; // on the other ranks
    TemporaryPath                       scratch_base;
    std::unique_ptr<Trainer>            trainer;
};

// On rank 0. If the new run fails before its first checkpoint, the run that --force replaced is restored.
Run open_run(const TrainSettings & settings, const Options & options, const Backend & backend, Collective & ranks) {
    const bool      resume = options.flag("resume");
    const bool      force  = options.flag("force");
    const bool      is_new = !settings.shape_path.empty(); // the random backbone is then stored in the run folder
    const RunFolder folder(settings.out);
    Run             run;
    folder.check(resume, force);
    if (is_new && !(resume && folder.has(folder.base()))) {
        const RandomBackbone shape = read_backbone_shape(settings.shape_path);
        run.hold                   = folder.create(resume, force);
        run.hold->remove_on_failure(folder.base());
        write_random_backbone(shape, settings.model.seed, folder.base());
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

// On the other ranks, which do not write to the run folder: it may be on another machine.
Run join_run(TrainSettings settings, const Backend & backend, Collective & ranks) {
    Run run;
    if (!settings.shape_path.empty()) {
        run.scratch         = std::make_unique<TemporaryDirectory>();
        settings.model.base = run.scratch->file("base.gguf");
        run.scratch_base    = TemporaryPath(settings.model.base);
        write_random_backbone(read_backbone_shape(settings.shape_path), settings.model.seed, settings.model.base);
    }
    run.trainer = std::make_unique<Trainer>(settings, backend, ranks);
    return run;
}

// Result of the run; none for --dry-run and --dump-gradients.
std::optional<TrainResult> train(const Options & given, Terminal & terminal, Collective & ranks) {
    std::optional<Options>           options;
    std::unique_ptr<Backend>         backend;
    std::optional<InterruptDeferral> hold;
    Run                              run;
    on_all_ranks(ranks, [&] {
        if (ranks.is_root()) {
            RunFolder(given.required("out")).recover();
        }
    });
    on_all_ranks(ranks, [&] {
        options.emplace(with_run_config(given));
        const TrainSettings settings = read_train_settings(*options);
        backend = std::make_unique<Backend>(find_device(options->text("device")), int(options->integer("threads")));
        if (options->flag("dry-run") || options->given("dump-gradients")) {
            if (ranks.is_root()) {
                preview(settings, *options, *backend, terminal);
            }
            return;
        }
        run = ranks.is_root() ? open_run(settings, *options, *backend, ranks) : join_run(settings, *backend, ranks);
        if (ranks.is_root()) {
            terminal.tell(task_line(run.trainer->task()));
        }
        hold.emplace(InterruptDeferral::all_signals);
    });
    if (!run.trainer) {
        return std::nullopt;
    }
    TrainEvents events = shown_events(terminal, options->integer("log-every"));
    events.stop        = [] { return interrupt_count() > 0; };
    return run.trainer->run(events, options->flag("resume"));
}

} // namespace

int cmd_train(const Options & options, Terminal & terminal) {
    std::optional<TrainResult> outcome;
    {
        const std::unique_ptr<Collective> ranks = join_ranks();
        if (!ranks->is_root()) {
            // Only rank 0 prints, and only its exit code counts.
            log_set_level(LogLevel::error);
            try {
                train(options, terminal, *ranks);
            } catch (const std::exception &) {
                if (!ranks->aborted()) {
                    throw;
                }
            }
            return 0;
        }
        outcome = train(options, terminal, *ranks);
    }
    terminal.progress("");
    if (outcome && outcome->interrupted) {
        const std::string to_try = outcome->model_path.empty() ? "" : "; " + outcome->model_path + " is usable";
        throw Error(ErrorKind::cancelled,
                    "interrupted after update " + std::to_string(outcome->update) + "; checkpoint saved" + to_try,
                    "penelope train --resume --out " + options.text("out") + " continues");
    }
    if (outcome) {
        show_outcome(*outcome, options, terminal);
    }
    return 0;
}

} // namespace penelope
