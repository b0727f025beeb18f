// Stands in for http_curl.cpp in a build without libcurl.
#include "base/error.h"
#include "hub/http.h"

namespace penelope {

HttpReply http_get(const HttpRequest & request, const HttpBody &, const std::function<bool()> &) {
    throw Error(ErrorKind::unsupported, request.url + ": this build cannot download, it was made without libcurl",
                "install libcurl4-openssl-dev and build again, or download the file and give it with -m");
}

} // namespace penelope
