#include "hub/download.h"

#include "base/format.h"
#include "base/sync_path.h"
#include "hub/blob_lock.h"
#include "hub/checksum.h"
#include "hub/http.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

namespace penelope {

namespace fs = std::filesystem;

namespace {

constexpr int kMaxFailures = 4;   // attempts in a row that bring no byte
constexpr int kFirstPause  = 500; // ms; doubles each time

// The bytes that have come, and their checksum so far.
class Incomplete {
  public:
    Incomplete(fs::path path, const RepoFile & file)
        : path_(std::move(path)), file_(file), sum_(std::in_place, file.oid, file.size) {
        fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (fd_ < 0) {
            fail("cannot be opened", errno);
        }
        read_existing();
    }
    ~Incomplete() { ::close(fd_); }
    Incomplete(const Incomplete &)             = delete;
    Incomplete & operator=(const Incomplete &) = delete;

    uint64_t size() const { return size_; }

    void restart() {
        if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) != 0) {
            fail("cannot be truncated", errno);
        }
        size_ = 0;
        sum_.emplace(file_.oid, file_.size);
    }

    void append(std::string_view bytes) {
        sum_->add(bytes);
        size_ += bytes.size();
        while (!bytes.empty()) {
            const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
            if (n < 0 && errno != EINTR) {
                fail("cannot be written", errno);
            }
            bytes.remove_prefix(n < 0 ? 0 : size_t(n));
        }
    }

    void require_space() const {
        std::error_code ec;
        const uint64_t  free = fs::space(path_.parent_path(), ec).available;
        if (!ec && file_.size - size_ > free) {
            throw Error(ErrorKind::io,
                        file_.path + ": the disk is full: needs " + format_bytes(file_.size - size_) + ", " +
                            format_bytes(free) + " are free in " + path_.parent_path().string(),
                        "free some space (penelope list, penelope rm), or set HF_HUB_CACHE to another disk");
        }
    }

    std::string checksum() { return sum_->hex(); }

    void sync() const {
        if (const int code = sync_open_file(fd_)) {
            fail("cannot be written", code);
        }
    }

  private:
    void read_existing() {
        std::vector<char> buffer(1 << 20);
        while (true) {
            const ssize_t n = ::read(fd_, buffer.data(), buffer.size());
            if (n < 0 && errno == EINTR) {
                continue;
            }
            if (n < 0) {
                fail("cannot be read", errno);
            }
            if (n == 0) {
                break;
            }
            sum_->add({ buffer.data(), size_t(n) });
            size_ += size_t(n);
        }
        if (size_ > file_.size) {
            restart();
        }
    }

    [[noreturn]] void fail(const std::string & what, int code) const {
        const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
        throw Error(ErrorKind::io, in_quotes(path_.string(), 1024) + ": " + what + ": " + std::strerror(code),
                    full ? "free some space and run the command again: it goes on at " + format_bytes(size_) : "");
    }

    fs::path                path_;
    const RepoFile &        file_;
    std::optional<Checksum> sum_;
    uint64_t                size_ = 0;
    int                     fd_   = -1;
};

class Downloader {
  public:
    Downloader(const HubSettings & settings, const std::string & repo, const std::string & commit,
               const RepoFile & file, const DownloadCallbacks & callbacks, Incomplete & target)
        : settings_(settings), repo_(repo), file_(file), callbacks_(callbacks), target_(target),
          url_(settings.endpoint + "/" + repo + "/resolve/" + commit + "/" + url_path(file.path)),
          resumed_at_(target.size()) {}

    void run() {
        std::string last_failure;
        for (int n_failures = 0; target_.size() < file_.size;) {
            const uint64_t before = target_.size();
            if (n_failures > 0) {
                pause(n_failures, last_failure);
            }
            last_failure = attempt();
            n_failures   = target_.size() > before ? 1 : n_failures + 1;
            if (last_failure.empty()) {
                continue;
            }
            if (n_failures >= kMaxFailures) {
                throw HubUnreachable(ErrorKind::io,
                                     name() + ": the download stopped at " + progress_text() + ": " + last_failure,
                                     "run the command again: it goes on there");
            }
        }
    }

  private:
    std::string name() const { return repo_ + "/" + file_.path; }
    std::string progress_text() const { return format_bytes(target_.size()) + " of " + format_bytes(file_.size); }

    void report() const {
        if (callbacks_.progress) {
            callbacks_.progress({ file_.path, target_.size(), file_.size, resumed_at_ });
        }
    }

    // Returns why the transfer ended early, "" if it did not.
    std::string attempt() {
        HttpRequest request{ url_, settings_.token, target_.size(), settings_.timeout };
        bool        checked = false;
        const auto  on_body = [&](const HttpReply & reply, std::string_view bytes) {
            if (!checked) {
                check_range(reply, request.offset);
                checked = true;
            }
            if (bytes.size() > file_.size - target_.size()) {
                throw Error(ErrorKind::format,
                             name() + ": the server sends more than the " + std::to_string(file_.size) +
                                 " bytes it announced",
                             "try again later, or check HF_ENDPOINT");
            }
            target_.append(bytes);
            report();
            return true;
        };
        const HttpReply reply = http_get(request, on_body, callbacks_.cancelled);
        if (reply.aborted) {
            throw Error(ErrorKind::cancelled, "interrupted: " + progress_text() + " of " + name() + " are kept",
                        "run the command again: it goes on there");
        }
        if (reply.status == 416) { // what is here does not fit what is there
            target_.restart();
            return "the server refused to go on";
        }
        if (reply.status >= 300 && reply.status < 400) {
            throw Error(ErrorKind::io, name() + ": the server's redirect was refused: " + reply.failure,
                        "files come by http and https only; check HF_ENDPOINT");
        }
        if (reply.status != 0 && !reply.ok()) {
            if (reply.status >= 500 || reply.status == 429 || reply.status == 408) {
                return "the server answers " + std::to_string(reply.status);
            }
            const auto message = reply.headers.find("x-error-message");
            throw_status(settings_, repo_, name(), reply.status, message == reply.headers.end() ? "" : message->second);
        }
        if (!reply.failure.empty()) {
            return reply.failure;
        }
        return target_.size() < file_.size ? "the server sent less than it announced" : "";
    }

    // A server that does not know ranges sends the whole file again.
    void check_range(const HttpReply & reply, uint64_t offset) {
        if (offset == 0) {
            return;
        }
        const auto        range = reply.headers.find("content-range");
        const std::string start = "bytes " + std::to_string(offset) + "-";
        const bool        fits =
            reply.status == 206 && range != reply.headers.end() && range->second.compare(0, start.size(), start) == 0;
        if (!fits) {
            target_.restart();
            resumed_at_ = 0;
            if (reply.status == 206) {
                throw Error(ErrorKind::format, name() + ": the server sends another range than the one asked for",
                            "run the command again: it begins anew");
            }
        }
    }

    void pause(int n_failures, const std::string & why) const {
        const int ms = kFirstPause << (n_failures - 1);
        if (callbacks_.message) {
            callbacks_.message(name() + ": " + why + "; trying again, " + progress_text() + " are here");
        }
        for (int waited = 0; waited < ms && !(callbacks_.cancelled && callbacks_.cancelled()); waited += 50) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
    }

    const HubSettings &       settings_;
    const std::string         repo_;
    const RepoFile &          file_;
    const DownloadCallbacks & callbacks_;
    Incomplete &              target_;
    const std::string         url_;
    uint64_t                  resumed_at_;
};

} // namespace

void download_file(const HubSettings & settings, const RepoCache & cache, const std::string & commit,
                   const RepoFile & file, const DownloadCallbacks & callbacks) {
    const fs::path blob = cache.blob(file.oid);
    const fs::path part = blob.string() + ".incomplete";
    fs::create_directories(blob.parent_path());
    const BlobLock lock(
        cache.lock_file(file.oid),
        [&] {
            if (callbacks.message) {
                callbacks.message(file.path + ": another process downloads it; waiting");
            }
        },
        callbacks.cancelled);
    std::error_code ec;
    if (fs::file_size(blob, ec) == file.size && !ec) {
        return; // the other process has it
    }
    Incomplete target(part, file);
    target.require_space();
    const bool resumed = target.size() > 0;
    Downloader(settings, cache.repo(), commit, file, callbacks, target).run();
    std::string found = target.checksum();
    if (found != file.oid && resumed) { // what an earlier attempt left may be wrong
        target.restart();
        Downloader(settings, cache.repo(), commit, file, callbacks, target).run();
        found = target.checksum();
    }
    if (found != file.oid) {
        fs::remove(part, ec);
        throw Error(ErrorKind::format,
                    cache.repo() + "/" + file.path + ": wrong checksum: expected " + file.oid + ", found " + found,
                    "the download was damaged and is removed; run the command again");
    }
    target.sync();
    fs::rename(part, blob);
    if (const int code = sync_path(blob.parent_path().string())) {
        throw Error(ErrorKind::io, in_quotes(blob.string(), 1024) + ": cannot be written: " + std::strerror(code));
    }
}

} // namespace penelope
