// Errors of HTTP requests: status, message, and the JSON bodies of OpenAI and Anthropic.
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
    std::string param; // the invalid field of the request, may be empty
    std::string code;  // machine-readable code, may be empty
};

// 400 for errors of the client, 500 or 503 for ours, by the kind of Error. Exceptions that are not an Error are logged;
// the client only sees the status.
RequestError to_request_error(const Error & error);
RequestError to_request_error(const std::exception & error);

// {"error": {"message", "type", "param", "code"}} (OpenAI) and {"type": "error", "error": {...}} (Anthropic).
OrderedJson openai_error(const RequestError & error);
OrderedJson anthropic_error(const RequestError & error);

} // namespace penelope
