#include "base/error.h"
#include "base/format.h"
#include "hub/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <mutex>

namespace penelope {

namespace {

constexpr long   kMaxRedirects  = 10;
constexpr size_t kMaxErrorBytes = 64 << 10;

struct Transfer {
    HttpReply                     reply;
    const HttpBody &              on_body;
    const std::function<bool()> & cancelled;
    std::exception_ptr            thrown; // by on_body: must not pass through curl
};

size_t take_header(char * data, size_t size, size_t n, void * user) {
    Transfer &             transfer = *static_cast<Transfer *>(user);
    const std::string_view line(data, size * n);
    if (line.compare(0, 5, "HTTP/") == 0) { // a reply begins; those before were redirects
        transfer.reply.headers.clear();
        const size_t space = line.find(' ');
        transfer.reply.status =
            space == std::string_view::npos ? 0 : std::atol(std::string(line.substr(space)).c_str());
        return size * n;
    }
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos) {
        const size_t first = line.find_first_not_of(" \t\r\n", colon + 1);
        const size_t last  = line.find_last_not_of(" \t\r\n");
        transfer.reply.headers[to_lower(line.substr(0, colon))] =
            first == std::string_view::npos ? "" : std::string(line.substr(first, last + 1 - first));
    }
    return size * n;
}

size_t take_body(char * data, size_t size, size_t n, void * user) {
    Transfer &             transfer = *static_cast<Transfer *>(user);
    const std::string_view bytes(data, size * n);
    if (!transfer.reply.ok()) {
        const size_t left = kMaxErrorBytes - std::min(kMaxErrorBytes, transfer.reply.error_body.size());
        transfer.reply.error_body += bytes.substr(0, left);
        return bytes.size();
    }
    try {
        transfer.reply.aborted = !transfer.on_body(transfer.reply, bytes);
    } catch (...) {
        transfer.thrown = std::current_exception();
    }
    return transfer.reply.aborted || transfer.thrown ? 0 : bytes.size();
}

int take_progress(void * user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    Transfer & transfer    = *static_cast<Transfer *>(user);
    transfer.reply.aborted = transfer.reply.aborted || (transfer.cancelled && transfer.cancelled());
    return transfer.reply.aborted ? 1 : 0;
}

void allow_protocols(CURL * curl, bool secure) {
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, long(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, long(secure ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

} // namespace

HttpReply http_get(const HttpRequest & request, const HttpBody & on_body, const std::function<bool()> & cancelled) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    const std::unique_ptr<CURL, void (*)(CURL *)> handle(curl_easy_init(), curl_easy_cleanup);
    CURL *                                        curl = handle.get();
    if (curl == nullptr) {
        throw Error(ErrorKind::memory, "libcurl: cannot be started");
    }
    Transfer transfer{ {}, on_body, cancelled, nullptr };
    char     message[CURL_ERROR_SIZE] = "";

    // curl does not repeat this header for another host, port or protocol.
    std::unique_ptr<curl_slist, void (*)(curl_slist *)> headers(
        request.token.empty() ? nullptr
                              : curl_slist_append(nullptr, ("Authorization: Bearer " + request.token).c_str()),
        curl_slist_free_all);
    curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "penelope/" PENELOPE_VERSION);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMaxRedirects);
    allow_protocols(curl, request.url.compare(0, 8, "https://") == 0);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, long(request.timeout));
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, long(request.timeout));
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, take_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
    if (request.offset > 0) {
        curl_easy_setopt(curl, CURLOPT_RANGE, (std::to_string(request.offset) + "-").c_str());
    }
    const CURLcode code = curl_easy_perform(curl);
    if (transfer.thrown) {
        std::rethrow_exception(transfer.thrown);
    }
    if (code != CURLE_OK && !transfer.reply.aborted) {
        transfer.reply.failure = *message != '\0' ? message : curl_easy_strerror(code);
        std::replace_if( // it may quote the server
            transfer.reply.failure.begin(), transfer.reply.failure.end(), [](char c) { return c < ' ' || c > '~'; },
            '?');
    }
    return transfer.reply;
}

} // namespace penelope
