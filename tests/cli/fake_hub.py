"""A server on 127.0.0.1 that speaks the endpoints of the Hugging Face hub this program uses, and fails on request.

/api/models/USER/REPO/refs, /api/models/USER/REPO/tree/COMMIT and /USER/REPO/resolve/COMMIT/FILE, which redirects to a
second server as the hub does. Standard library only.
"""

import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def reply_json(self, value, headers=()):
        self.reply(200, json.dumps(value).encode(), [("Content-Type", "application/json"), *headers])

    def do_GET(self):
        hub = self.server.hub
        path = unquote(urlsplit(self.path).path)
        hub.requests.append((self.server.name, self.path, dict(self.headers)))
        try:
            if self.server.name == "cdn":
                self.send_file(hub, path.rsplit("/", 1)[1])
            else:
                self.answer(hub, path)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, hub, path):
        parts = path.strip("/").split("/")
        is_api = parts[:2] == ["api", "models"]
        repo = "/".join(parts[2:4] if is_api else parts[:2])
        if hub.status:
            return self.reply(hub.status, b'{"error": "as the test asks"}')
        if repo in hub.gated and self.headers.get("Authorization") != "Bearer " + hub.gated[repo]:
            return self.reply(401, b'{"error": "Access to this model is restricted."}')
        if repo not in hub.repos:
            return self.reply(404, b'{"error": "Repository not found"}')
        if is_api and parts[4] == "refs":
            return self.reply_json({"branches": [{"name": "old", "targetCommit": "f" * 40},
                                                 {"name": "main", "targetCommit": COMMIT}]})
        if is_api and parts[4:6] == ["tree", COMMIT]:
            return self.send_tree(hub, repo)
        name = "/".join(parts[4:])
        if parts[2:4] == ["resolve", COMMIT] and name in hub.repos[repo]:
            oid = hub.oid(hub.repos[repo][name], name)
            return self.reply(302, b"", [("Location", hub.location(oid)), ("X-Linked-Etag", f'"{oid}"')])
        return self.reply(404, b"", [("X-Error-Message", "Entry not found")])

    def send_tree(self, hub, repo):
        entries = [{"type": "directory", "path": "folder", "oid": "0" * 40, "size": 0}]
        for name, data in hub.repos[repo].items():
            entry = {"type": "file", "path": name, "size": hub.sizes.get(name, len(data)), "oid": git_sha1(data)}
            if name not in hub.plain:
                entry["lfs"] = {"oid": hub.oid(data, name), "size": hub.sizes.get(name, len(data)), "pointerSize": 134}
            entries.append(entry)
        # Two pages, as for a large repository.
        if "cursor=" in self.path:
            return self.reply_json(entries[1:])
        link = f'<{hub.endpoint}/api/models/{repo}/tree/{COMMIT}?recursive=true&cursor=x>; rel="next"'
        return self.reply_json(entries[:1], [("Link", link)])

    def send_file(self, hub, oid):
        data = hub.blobs[oid]
        start = 0
        wanted = self.headers.get("Range")
        if wanted and hub.ranges:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
        body = data[start:]
        self.send_response(206 if wanted and hub.ranges else 200)
        self.send_header("Content-Length", str(len(body)))
        if wanted and hub.ranges:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        if hub.cuts:
            body = body[:hub.cuts.pop(0)]
            self.close_connection = True
        for at in range(0, len(body), hub.chunk):
            self.wfile.write(body[at:at + hub.chunk])
            hub.sent += len(body[at:at + hub.chunk])
            time.sleep(hub.delay)
        if self.close_connection and hub.stall:
            time.sleep(hub.stall)


class FakeHub:
    def __init__(self):
        self.repos = {}      # name -> {file: bytes}
        self.plain = set()   # files that are not in LFS
        self.gated = {}      # repository -> token
        self.sizes = {}      # file -> size the listing claims
        self.corrupt = {}    # file -> bytes that are sent instead
        self.blobs = {}
        self.requests = []   # (server, path, headers)
        self.cuts = []       # each transfer ends after so many bytes
        self.status = 0      # of every reply of the API
        self.ranges = True
        self.chunk, self.delay, self.stall, self.sent = 1 << 16, 0, 0, 0
        self.redirect = None  # where files are, instead of the second server
        self.servers = [self.start("api"), self.start("cdn")]
        self.endpoint = "http://127.0.0.1:%d" % self.servers[0].server_port
        self.cdn = "http://127.0.0.1:%d" % self.servers[1].server_port

    def start(self, name):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.hub, server.name = self, name
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def oid(self, data, name):
        oid = git_sha1(data) if name in self.plain else hashlib.sha256(data).hexdigest()
        self.blobs[oid] = self.corrupt.get(name, data)
        return oid

    def location(self, oid):
        return self.redirect or f"{self.cdn}/blob/{oid}"

    def downloads(self):
        return [request for request in self.requests if request[0] == "cdn"]

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()
