// Training through the table of settings that the program has. Runs on the caller's thread, so that callbacks do.
#include "bindings.h"

#include "graph/device.h"
#include "train/named_settings.h"
#include "train/open_run.h"
#include "train/setting_table.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace penelope::python {

namespace {

nb::dict to_dict(const UpdateReport & r) {
    nb::dict d;
    d["update"]            = r.update;
    d["n_updates"]         = r.n_updates;
    d["latent_steps"]      = r.stage.n_steps;
    d["loss"]              = r.loss;
    d["step_loss"]         = r.step_loss < 0 ? nb::none() : nb::object(nb::float_(r.step_loss));
    d["lr"]                = nb::make_tuple(r.backbone_lr, r.module_lr);
    d["grad_norm"]         = r.grad_norm;
    d["tokens_per_second"] = r.tokens_per_second;
    d["ms"]                = r.ms;
    d["ms_left"]           = r.ms_left;
    d["epochs"]            = r.epochs;
    return d;
}

nb::dict to_dict(const ValidationReport & r) {
    nb::dict d;
    d["update"]       = r.update;
    d["latent_steps"] = r.stage.n_steps;
    d["loss"]         = r.loss;
    d["exact_match"]  = r.exact;
    d["n_examples"]   = r.n_examples;
    d["is_best"]      = r.is_best;
    return d;
}

nb::dict to_dict(const TrainResult & r) {
    nb::dict d;
    d["model_path"]       = r.model_path;
    d["updates"]          = r.update;
    d["best_update"]      = r.best.update;
    d["best_loss"]        = r.best.loss;
    d["best_exact_match"] = r.best.exact;
    d["exact_match_by_k"] = r.exact;
    d["k_default"]        = r.k_default;
    return d;
}

// What a callback or a signal handler raised. It stops the run, which saves a checkpoint first.
class RaisedException {
  public:
    template <typename Function> void guard(Function && function) {
        const nb::gil_scoped_acquire acquire;
        if (raised_) {
            return;
        }
        try {
            function();
        } catch (...) {
            raised_ = std::current_exception();
        }
    }
    bool present() const { return raised_ != nullptr; }
    void rethrow() const { std::rethrow_exception(raised_); }

  private:
    std::exception_ptr raised_;
};

nb::dict train(const std::string & base, const std::string & data, const std::string & out,
               const std::vector<NamedSetting> & given, bool resume, bool force, const std::string & device,
               int n_threads, const nb::object & on_update, const nb::object & on_validation) {
    TrainSettings settings = named_settings(given);
    settings.out           = out;
    settings.data          = data;
    settings.model.base    = settings.shape_path.empty() ? base : RunFolder(out).base();

    RaisedException raised;
    TrainEvents     events;
    events.updated   = [&](const UpdateReport & r) { raised.guard([&] { on_update(to_dict(r)); }); };
    events.validated = [&](const ValidationReport & r) { raised.guard([&] { on_validation(to_dict(r)); }); };
    events.stop      = [&] {
        raised.guard([] {
            if (PyErr_CheckSignals() != 0) {
                throw nb::python_error();
            }
        });
        return raised.present();
    };

    TrainResult result;
    {
        const nb::gil_scoped_release release;
        RunFolder(out).recover();
        const Backend                     backend(find_device(device), n_threads);
        const std::unique_ptr<Collective> ranks = single_process();
        const OpenRun                     run   = open_run(settings, { resume, force }, backend, *ranks);
        result                                  = run.trainer->run(events, resume);
    }
    if (raised.present()) {
        raised.rethrow();
    }
    return to_dict(result);
}

nb::list settings() {
    nb::list all;
    for (const SettingRow & row : setting_table()) {
        nb::dict one;
        one["name"]    = row.name;
        one["default"] = row.fallback;
        one["limits"]  = row.limits;
        one["help"]    = row.help;
        all.append(one);
    }
    return all;
}

} // namespace

void bind_train(nb::module_ & m) {
    m.def("train", &train, nb::arg("base"), nb::arg("data"), nb::arg("out"), nb::arg("settings"), nb::arg("resume"),
          nb::arg("force"), nb::arg("device"), nb::arg("n_threads"), nb::arg("on_update"), nb::arg("on_validation"));
    m.def("settings", &settings);
}

} // namespace penelope::python
