#include "serve/errors.h"

#include "base/log.h"

#include <new>

namespace penelope {

namespace {

struct StatusRow {
    int          status;
    const char * openai;
    const char * anthropic;
};

constexpr StatusRow kStatusRows[] = {
    { 400, "invalid_request_error", "invalid_request_error" },
    { 401, "authentication_error", "authentication_error" },
    { 403, "permission_error", "permission_error" },
    { 404, "not_found_error", "not_found_error" },
    { 405, "invalid_request_error", "invalid_request_error" },
    { 408, "timeout_error", "timeout_error" },
    { 413, "invalid_request_error", "request_too_large" },
    { 415, "invalid_request_error", "invalid_request_error" },
    { 500, "server_error", "api_error" },
    { 503, "unavailable_error", "overloaded_error" },
    { 504, "timeout_error", "timeout_error" },
};

const StatusRow & row_of(int status) {
    for (const StatusRow & row : kStatusRows) {
        if (row.status == status) {
            return row;
        }
    }
    return status < 500 ? kStatusRows[0] : row_of(500);
}

OrderedJson null_if_empty(const std::string & text) {
    return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

} // namespace

RequestError to_request_error(const Error & error) {
    if (error.kind == ErrorKind::cancelled) {
        return RequestError(503, "the server is shutting down", "", "shutting_down");
    }
    const std::string text = error.hint.empty() ? error.message() : error.message() + " (" + error.hint + ")";
    const bool        is_client_error = error.kind == ErrorKind::usage || error.kind == ErrorKind::unsupported;
    return RequestError(is_client_error ? 400 : error.kind == ErrorKind::memory ? 503 : 500, text);
}

RequestError to_request_error(const std::exception & error) {
    if (const auto * own = dynamic_cast<const Error *>(&error)) {
        return to_request_error(*own);
    }
    if (const auto * own = dynamic_cast<const RequestError *>(&error)) {
        return *own;
    }
    log_error(std::string("serve: ") + error.what());
    return dynamic_cast<const std::bad_alloc *>(&error) ? RequestError(503, "out of memory: an allocation failed")
                                                        : RequestError(500, "internal error");
}

OrderedJson openai_error(const RequestError & error) {
    return { { "error",
               { { "message", error.what() },
                 { "type", row_of(error.status).openai },
                 { "param", null_if_empty(error.param) },
                 { "code", null_if_empty(error.code) } } } };
}

OrderedJson anthropic_error(const RequestError & error) {
    return { { "type", "error" },
             { "error", { { "type", row_of(error.status).anthropic }, { "message", error.what() } } } };
}

} // namespace penelope
