// One HTTP GET by libcurl. Redirects go to http and https only, never from https to http; the token is sent to the
// first host alone. Proxies and certificates are those of the environment, as curl takes them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace penelope {

struct HttpRequest {
    std::string url;
    std::string token;        // "": none
    uint64_t    offset  = 0;  // ask for the bytes from here on
    int         timeout = 10; // seconds without a byte, and for connecting
};

struct HttpReply {
    long                               status = 0;      // 0: no reply
    std::map<std::string, std::string> headers;         // of the last reply, names in lower case
    std::string                        error_body;      // of a reply other than 2xx, its first 64 KiB
    std::string                        failure;         // "": the whole reply came; else why it did not
    bool                               aborted = false; // by on_body or cancelled

    bool ok() const { return status >= 200 && status < 300; }
};

// Takes the body of a 2xx reply as it comes; `reply` has status and headers. False ends the transfer.
using HttpBody = std::function<bool(const HttpReply & reply, std::string_view bytes)>;

// cancelled: asked at least once a second, true ends the transfer. Throws Error(unsupported) in a build without
// libcurl.
HttpReply http_get(const HttpRequest & request, const HttpBody & on_body, const std::function<bool()> & cancelled);

// "a b/c" -> "a%20b/c"
std::string url_path(std::string_view path);

} // namespace penelope
