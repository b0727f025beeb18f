// The extension module penelope._penelope: the library as the Python files of the package use it.
#include "bindings.h"

#include "base/log.h"
#include "graph/device.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace penelope::python {

namespace {

void set_log_level(const std::string & name) {
    for (const auto & [known, level] : { std::pair("error", LogLevel::error), std::pair("warning", LogLevel::warning),
                                         std::pair("info", LogLevel::info), std::pair("debug", LogLevel::debug) }) {
        if (name == known) {
            log_set_level(level);
            return;
        }
    }
    throw Error(ErrorKind::usage, "log level: '" + name + "' is not one of error, warning, info, debug");
}

nb::list devices() {
    nb::list all;
    for (const DeviceInfo & device : list_devices()) {
        nb::dict one;
        one["name"]         = device.name;
        one["description"]  = device.description;
        one["memory_free"]  = device.memory_free;
        one["memory_total"] = device.memory_total;
        all.append(one);
    }
    return all;
}

} // namespace

} // namespace penelope::python

NB_MODULE(_penelope, m) {
    using namespace penelope::python;
    m.doc() = "The library behind the package penelope.";
    penelope::log_route_ggml();
    penelope::log_set_level(penelope::LogLevel::warning); // a library speaks when something is wrong
    m.attr("version") = PENELOPE_VERSION;
    m.def("ggml_version", &penelope::ggml_version_text);
    m.def("set_log_level", &set_log_level, nb::arg("name"));
    m.def("devices", &devices);
    bind_errors(m);
    bind_model(m);
    bind_session(m);
    bind_train(m);
    bind_evaluate(m);
}
