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
#include "train/open_run.h"
#include "train/random_backbone.h"

#include <optional>

namespace penelope {

namespace {

// --dry-run and --dump-gradients: nothing is written to the run folder.
void preview(TrainSettings settings, const Options & options, const Backend & backend, Terminal & terminal) {
    const TemporaryDirectory scratch;
    const std::string        backbone = scratch.file("base.gguf");
    const TemporaryPath      removed_on_signals(backbone);
    if (!settings.shape_path.empty()) {
        const NewBackbone made = read_new_backbone(settings.shape_path, settings.data);
        write_random_backbone(made.shape, settings.model.seed, backbone, made.vocabulary);
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

// Result of the run; none for --dry-run and --dump-gradients.
std::optional<TrainResult> train(const Options & given, Terminal & terminal, Collective & ranks) {
    std::optional<Options>           options;
    std::unique_ptr<Backend>         backend;
    std::optional<InterruptDeferral> hold;
    OpenRun                          run;
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
        run = open_run(settings, { options->flag("resume"), options->flag("force") }, *backend, ranks);
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
