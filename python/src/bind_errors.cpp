// Errors of the library become penelope.PenelopeError, made by penelope/errors.py.
#include "bindings.h"

#include "base/error.h"

#include <nanobind/stl/string.h>

#include <new>

namespace nb = nanobind;

namespace penelope::python {

namespace {

void raise(const char * kind, const std::string & message, const std::string & hint) {
    const nb::object error = nb::module_::import_("penelope.errors").attr("make_error")(kind, message, hint);
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
}

void translate(const std::exception_ptr & thrown, void *) {
    try {
        std::rethrow_exception(thrown);
    } catch (const Error & error) {
        raise(error_kind_name(error.kind), error.message(), error.hint);
    } catch (const std::bad_alloc &) {
        raise("memory", "out of memory: an allocation failed", "use a smaller context, batch or model");
    }
}

} // namespace

void bind_errors(nb::module_ &) {
    nb::register_exception_translator(translate);
}

} // namespace penelope::python
