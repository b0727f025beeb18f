#include "inspect.h"

#include "infer/trace_json.h"

namespace penelope {

InspectionFiles::InspectionFiles(const Options & options) {
    for (const char * name : { "trace", "dump" }) {
        if (options.given(name) && options.flag("cot")) {
            throw UsageError(std::string("--") + name + " and --cot: exclude each other, --cot has no latent steps",
                             "give only one");
        }
    }
    if (options.given("trace") && options.text("trace") == options.text("dump")) {
        throw UsageError("--trace and --dump: same file name", "give two different files");
    }
    const bool force = options.flag("force");
    if (options.given("trace")) {
        trace_ = std::make_unique<AtomicFile>(options.text("trace"), force);
    }
    if (options.given("dump")) {
        dump_ = std::make_unique<SafetensorsWriter>(options.text("dump"), force);
    }
}

void InspectionFiles::check(const Engine & engine) const {
    if ((trace_ || dump_) && engine.sidecar() == nullptr) {
        throw Error(ErrorKind::usage, std::string(trace_ ? "--trace" : "--dump") + ": needs a sidecar",
                    "give a sidecar with --sidecar FILE");
    }
}

void InspectionFiles::add(Session & session, const std::vector<int32_t> & prompt, const OrderedJson & id, int n_steps) {
    if (trace_) {
        for (const TraceStep & step : session.trace(prompt, n_steps)) {
            OrderedJson object;
            if (!id.is_null()) {
                object["id"] = id;
            }
            object.update(trace_json(step));
            trace_->write(dump_json(object) + "\n");
        }
    }
    if (dump_ && !dumped_) {
        const std::vector<StateTensor> tensors = session.dump(prompt, n_steps);
        for (const StateTensor & tensor : tensors) {
            dump_->add_tensor(tensor.name, SafetensorsType::f32, tensor.shape);
        }
        dump_->begin_data();
        for (const StateTensor & tensor : tensors) {
            dump_->write(tensor.data.data(), tensor.data.size() * sizeof(float));
        }
        dumped_ = true;
    }
}

void InspectionFiles::finish() {
    if (trace_) {
        trace_->commit();
    }
    if (dump_) {
        dump_->finish();
    }
}

} // namespace penelope
