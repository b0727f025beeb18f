// penelope train: visible chain of thought, Penelope, Coconut or CODI on the examples of a directory.
#include "commands.h"
#include "interrupt.h"
#include "train_options.h"
#include "train_output.h"

#include "base/atomic_file.h"
#include "base/log.h"
#include "base/temporary_folder.h"
#include "mpi/join_ranks.h"
#include "train/dump_gradients.h"
#include "train/new_backbone.h"
#include "train/trainer.h"

#include <optional>

namespace penelope {

namespace {

// --dry-run and --dump-gradients: what a run would do, leaving no trace of it.
void look(TrainSettings settings, const Options & options, const Backend & backend, Terminal & terminal) {
    const TemporaryFolder scratch;
    const std::string     backbone = scratch.file("base.gguf");
    const TemporaryPath   removed_on_signals(backbone);
    if (!settings.new_shape.empty()) {
        write_new_backbone(read_backbone_shape(settings.new_shape), settings.model.seed, backbone);
        settings.model.base = backbone;
    }
    const std::unique_ptr<Collective> one = make_alone();
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

// What training runs on, as long as it does.
struct Run {
    std::unique_ptr<RunHold>         hold;    // of the first rank
    std::unique_ptr<TemporaryFolder> scratch; // of ranks without a run folder
    TemporaryPath                    scratch_base;
    std::unique_ptr<Trainer>         trainer;
};

// On the first rank. What --force replaces is there again when the new run does not get to its first checkpoint.
Run open_run(const TrainSettings & settings, const Options & options, const Backend & backend, Collective & ranks) {
    const bool      resume = options.flag("resume");
    const bool      force  = options.flag("force");
    const bool      is_new = !settings.new_shape.empty(); // the backbone then lies in the folder
    const RunFolder folder(settings.out);
    Run             run;
    folder.check(resume, force);
    if (is_new && !(resume && folder.has(folder.base()))) {
        const NewBackbone shape = read_backbone_shape(settings.new_shape);
        run.hold                = folder.create(resume, force);
        run.hold->begins_with(folder.base());
        write_new_backbone(shape, settings.model.seed, folder.base());
    }
    run.trainer = std::make_unique<Trainer>(settings, backend, ranks);
    if (!run.hold) {
        run.hold = folder.create(resume, force);
    }
    if (!resume) {
        run.hold->begins_with(folder.config());
        run.hold->begins_with(folder.build());
        write_file(folder.config(), settings_toml(run.trainer->settings()), true);
        write_file(folder.build(), dump_json(build_json(backend), 2) + "\n", true);
    }
    return run;
}

// On the other ranks, which leave the run folder alone: it may lie on another machine.
Run join_run(TrainSettings settings, const Backend & backend, Collective & ranks) {
    Run run;
    if (!settings.new_shape.empty()) {
        run.scratch         = std::make_unique<TemporaryFolder>();
        settings.model.base = run.scratch->file("base.gguf");
        run.scratch_base    = TemporaryPath(settings.model.base);
        write_new_backbone(read_backbone_shape(settings.new_shape), settings.model.seed, settings.model.base);
    }
    run.trainer = std::make_unique<Trainer>(settings, backend, ranks);
    return run;
}

// What the run came to; none when it was only looked at.
std::optional<TrainOutcome> train(const Options & given, Terminal & terminal, Collective & ranks) {
    std::optional<Options>       options;
    std::unique_ptr<Backend>     backend;
    std::optional<InterruptHold> hold;
    Run                          run;
    together(ranks, [&] {
        if (ranks.is_first()) {
            RunFolder(given.required("out")).recover();
        }
    });
    together(ranks, [&] {
        options.emplace(with_run_config(given));
        const TrainSettings settings = read_train_settings(*options);
        backend = std::make_unique<Backend>(find_device(options->text("device")), int(options->integer("threads")));
        if (options->flag("dry-run") || options->given("dump-gradients")) {
            if (ranks.is_first()) {
                look(settings, *options, *backend, terminal);
            }
            return;
        }
        run = ranks.is_first() ? open_run(settings, *options, *backend, ranks) : join_run(settings, *backend, ranks);
        if (ranks.is_first()) {
            terminal.tell(task_line(run.trainer->task()));
        }
        hold.emplace(InterruptHold::all_signals);
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
    std::optional<TrainOutcome> outcome;
    {
        const std::unique_ptr<Collective> ranks = join_ranks();
        if (!ranks->is_first()) {
            // The first rank says everything, and its exit code is that of all.
            log_set_level(LogLevel::error);
            try {
                train(options, terminal, *ranks);
            } catch (const std::exception &) {
                if (!ranks->parted()) {
                    throw;
                }
            }
            return 0;
        }
        outcome = train(options, terminal, *ranks);
    }
    terminal.progress("");
    if (outcome && outcome->interrupted) {
        const std::string to_try = outcome->model_path.empty() ? "" : ", and " + outcome->model_path + " can be tried";
        throw Error(ErrorKind::cancelled,
                    "interrupted after update " + std::to_string(outcome->update) + "; everything is saved" + to_try,
                    "penelope train --resume --out " + options.text("out") + " continues");
    }
    if (outcome) {
        show_outcome(*outcome, options, terminal);
    }
    return 0;
}

} // namespace penelope
