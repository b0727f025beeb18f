#include "hub/listing.h"

#include "base/format.h"
#include "base/hub_path.h"
#include "base/json.h"
#include "hub/http.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr size_t kMaxListingBytes = size_t(64) << 20;
constexpr int    kMaxPages        = 1000; // of 1000 files each

// The server's own words: the header that names the error, else the field "error" of the body.
std::string server_message(const HttpReply & reply) {
    const auto header = reply.headers.find("x-error-message");
    if (header != reply.headers.end()) {
        return header->second;
    }
    const std::optional<Json> body = try_parse_json(reply.error_body);
    return body && body->is_object() && body->contains("error") && (*body)["error"].is_string()
               ? (*body)["error"].get<std::string>()
               : "";
}

[[noreturn]] void throw_cancelled() {
    throw Error(ErrorKind::cancelled, "interrupted: nothing was downloaded");
}

Json get_json(const HubSettings & settings, const std::string & repo, const std::string & url,
              const std::function<bool()> & cancelled, std::string * next_page = nullptr) {
    std::string     text;
    const HttpReply reply = http_get(
        { url, settings.token, 0, settings.timeout },
        [&](const HttpReply &, std::string_view bytes) {
            text += bytes;
            return text.size() <= kMaxListingBytes;
        },
        cancelled);
    if (reply.aborted && cancelled && cancelled()) {
        throw_cancelled();
    }
    if (reply.aborted) {
        throw Error(ErrorKind::format, url + ": the listing is longer than " + format_bytes(kMaxListingBytes));
    }
    if (!reply.failure.empty()) {
        throw HubUnreachable(ErrorKind::io, repo + ": " + settings.endpoint + " cannot be reached: " + reply.failure,
                             "check the network, HF_ENDPOINT and the proxy; --offline uses what is downloaded already");
    }
    if (!reply.ok()) {
        throw_status(settings, repo, repo, reply.status, server_message(reply));
    }
    if (next_page != nullptr) {
        // Link: <https://host/api/...&cursor=...>; rel="next"
        const auto   link  = reply.headers.find("link");
        const size_t end   = link == reply.headers.end() ? std::string::npos : link->second.find(">; rel=\"next\"");
        const size_t start = end == std::string::npos ? std::string::npos : link->second.rfind('<', end);
        *next_page         = start == std::string::npos ? "" : link->second.substr(start + 1, end - start - 1);
    }
    return parse_json(text, url);
}

[[noreturn]] void fail(const std::string & repo, const std::string & why) {
    throw Error(ErrorKind::format, repo + ": the server's listing makes no sense: " + why,
                "check HF_ENDPOINT: it has to be a Hugging Face hub");
}

std::string text_field(const Json & object, const char * field) {
    const auto found = object.is_object() ? object.find(field) : object.end();
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

void find_commit(const Json & refs, RepoListing & listing) {
    const auto branches = refs.is_object() ? refs.find("branches") : refs.end();
    if (branches == refs.end() || !branches->is_array()) {
        fail(listing.repo, "no branches");
    }
    for (const Json & branch : *branches) {
        const std::string name = text_field(branch, "name"), commit = text_field(branch, "targetCommit");
        // The name becomes a file: only plain ones.
        const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
        });
        if (plain && is_hex(commit, 40) && (listing.commit.empty() || name == "main")) {
            listing.commit = commit;
            listing.branch = name;
        }
    }
    if (listing.commit.empty()) {
        fail(listing.repo, "no branch with a commit");
    }
}

// A path that stays inside the folder it is put into, and that a terminal can show.
bool is_safe_path(const std::string & path) {
    if (path.empty() || path.size() > 1024 || path.find('\\') != std::string::npos ||
        std::any_of(path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; })) {
        return false;
    }
    size_t start = 0;
    for (size_t end = 0; end != std::string::npos; start = end + 1) {
        end                    = path.find('/', start);
        const std::string part = path.substr(start, end - start);
        if (part.empty() || part == "." || part == "..") {
            return false;
        }
    }
    return true;
}

RepoFile read_entry(const std::string & repo, const Json & entry) {
    RepoFile file;
    file.path = text_field(entry, "path");
    if (!is_safe_path(file.path)) {
        fail(repo, "the file name " + in_quotes(file.path) + " leads out of the repository");
    }
    const auto   lfs  = entry.find("lfs");
    const Json & from = lfs != entry.end() && lfs->is_object() ? *lfs : entry;
    const auto   size = from.find("size");
    file.oid          = text_field(from, "oid");
    if (size == from.end() || !size->is_number_unsigned() || (!is_hex(file.oid, 40) && !is_hex(file.oid, 64))) {
        fail(repo, in_quotes(file.path) + " has no size and checksum");
    }
    file.size = size->get<uint64_t>();
    return file;
}

} // namespace

void throw_status(const HubSettings & settings, const std::string & repo, const std::string & what, long status,
                  const std::string & message) {
    const std::string page  = settings.endpoint + "/" + repo;
    const std::string words = message.empty() ? "" : " (" + in_quotes(message, 200) + ")";
    if (status == 401 || status == 403) {
        throw Error(
            ErrorKind::io,
            what + ": " + std::to_string(status) +
                (settings.token.empty() ? ": not public, or it does not exist" : ": the token gives no access") + words,
            settings.token.empty()
                ? "check the name; for a gated or private model accept its terms at " + page + " and set HF_TOKEN"
                : "check the name; accept the model's terms at " + page + ", or use another token");
    }
    if (status == 404) {
        throw Error(ErrorKind::not_found, what + ": 404: " + settings.endpoint + " has no such model" + words,
                    "check the name USER/REPO; for a private model set HF_TOKEN");
    }
    const std::string text = what + ": " + settings.endpoint + " answers " + std::to_string(status) + words;
    if (status >= 500 || status == 429) {
        throw HubUnreachable(ErrorKind::io, text, "try again later; --offline uses what is downloaded already");
    }
    throw Error(ErrorKind::io, text, "check HF_ENDPOINT: it has to be a Hugging Face hub");
}

RepoListing list_repo(const HubSettings & settings, const std::string & repo, const std::function<bool()> & cancelled) {
    RepoListing listing;
    listing.repo          = repo;
    const std::string api = settings.endpoint + "/api/models/" + repo;
    find_commit(get_json(settings, repo, api + "/refs", cancelled), listing);

    std::string url = api + "/tree/" + listing.commit + "?recursive=true";
    for (int page = 0; !url.empty() && page < kMaxPages; page++) {
        std::string next;
        const Json  tree = get_json(settings, repo, url, cancelled, &next);
        if (!tree.is_array()) {
            fail(repo, "no list of files");
        }
        for (const Json & entry : tree) {
            if (text_field(entry, "type") == "file") {
                listing.files.push_back(read_entry(repo, entry));
            }
        }
        // Pages of another host would get the token.
        url = next.compare(0, settings.endpoint.size() + 1, settings.endpoint + "/") == 0 ? next : "";
        if (url.empty() && !next.empty()) {
            fail(repo, "its next page is at another host, " + in_quotes(next));
        }
    }
    return listing;
}

} // namespace penelope
