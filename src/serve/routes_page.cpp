// The web page at /: one HTML file embedded in the program, which loads nothing from other hosts.
#include "serve/http.h"

#include <openssl/evp.h>

namespace penelope {

// Generated from web/ by the build.
extern const char * const page_html;

namespace {

// 'sha256-...' of the text between two tags: the content security policy allows only this script and style.
std::string hash_source(const std::string & page, const std::string & open, const std::string & close) {
    const size_t  begin = page.find(open) + open.size();
    const size_t  end   = page.find(close, begin);
    unsigned char hash[EVP_MAX_MD_SIZE], text[2 * EVP_MAX_MD_SIZE];
    unsigned int  size = 0;
    EVP_Digest(page.data() + begin, end - begin, hash, &size, EVP_sha256(), nullptr);
    EVP_EncodeBlock(text, hash, int(size));
    return std::string("'sha256-") + reinterpret_cast<const char *>(text) + "'";
}

} // namespace

void add_page(Listener & server) {
    const std::string page   = page_html;
    const std::string policy = "default-src 'none'; script-src " + hash_source(page, "<script>", "</script>") +
                               "; style-src " + hash_source(page, "<style>", "</style>") +
                               "; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
                               "frame-ancestors 'none'";
    server.Get("/", [page, policy](const httplib::Request &, httplib::Response & response) {
        response.set_header("Content-Security-Policy", policy);
        response.set_header("X-Content-Type-Options", "nosniff");
        response.set_header("Referrer-Policy", "no-referrer");
        response.set_header("Cache-Control", "no-cache");
        response.set_content(page, "text/html; charset=utf-8");
    });
    server.Get("/favicon.ico", [](const httplib::Request &, httplib::Response & response) { response.status = 204; });
}

} // namespace penelope
