// What goes wrong with a request, with the status and the words it is answered with.
#pragma once

#include "base/error.h"
#include "base/json.h"

#include <stdexcept>
#include <string>

namespace penelope {

struct RequestError : std::runtime_error {
    RequestError(int http_status, const std::string & message, std::string field = "", std::string error_code = "")
        : std::runtime_error(message), status(http_status), param(std::move(field)), code(std::move(error_code)) {}

    int         status;
    std::string param; // the field of the request it is about, may be empty
    std::string code;  // a word for programs, may be empty
};

// The request's fault (400) or ours (500, 503), by the kind of error. What is no error of the program's own is logged
// and named by its status alone.
RequestError to_request_error(const Error & error);
RequestError to_request_error(const std::exception & error);

// {"error": {"message", "type", "param", "code"}} as OpenAI has it, and {"type": "error", "error": {...}} of Anthropic.
OrderedJson openai_error(const RequestError & error);
OrderedJson anthropic_error(const RequestError & error);

} // namespace penelope
