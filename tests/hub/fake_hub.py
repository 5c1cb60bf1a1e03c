"""A stand-in for the Hub and its CDN on loopback, with what goes wrong between them and us.

It answers what huggingface_hub really asks: a model's listing, the tree of a commit, files by HEAD, whole and by ranges;
small files after a redirect on the same host, weights after one to another host, `localhost` where the Hub is `127.0.0.1`.
Files may be as long as one likes: past the bytes they are made of they are zeros, which are made up as they are sent.

    with FakeHub() as hub:
        hub.add("tiny/ok", {"config.json": b"{}", "model.safetensors": File(header, size=5 * 10**9)})
        hub.faults["model.safetensors"] = [503, "reset"]  # one for each request, then it is well again

A fault's key is a file's name on the Hub, `cdn/NAME`, or `api`.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import unquote, urlsplit

SMALL = 10**6
"""In bytes: what is shorter and no safetensors file is not in LFS."""
HASHED = 10**8
"""In bytes: of what is longer the hash stated is not the file's."""
CHUNK = bytes(2**16)


class File:
    """A file that begins with these bytes and goes on in zeros up to its size."""

    def __init__(self, head: bytes, size: int | None = None) -> None:
        self.head = head
        self.size = len(head) if size is None else size
        # Of a file that nobody downloads, any hash will do.
        rest = bytes(self.size - len(head)) if self.size <= HASHED else str(self.size).encode()
        self.sha256 = hashlib.sha256(head + rest).hexdigest()
        self.oid = hashlib.sha1(b"blob %d\0" % self.size + head).hexdigest()

    def pieces(self, begin: int, end: int) -> Iterator[bytes]:
        if begin < len(self.head):
            yield self.head[begin:end]
            begin = min(end, len(self.head))
        while begin < end:
            yield CHUNK[: end - begin]
            begin += len(CHUNK)


@dataclass
class Repo:
    """A repository: its commits, which of them each branch is at, and who may read it.

    Attributes:
        gated: anybody may list it, and files take a token of `allowed`.
        private: without a token of `allowed` it looks as if it were not there.
    """

    commits: dict[str, dict[str, File]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    gated: bool = False
    private: bool = False
    disabled: bool = False
    allowed: tuple[str, ...] = ()


@dataclass
class Asked:
    """A request as it came, and how many bytes of a body went out so far."""

    host: str
    method: str
    path: str
    headers: Mapping[str, str]
    sent: int = 0


class FakeHub:
    """The two servers, their repositories, and a record of what was asked.

    Attributes:
        latency, handshake: seconds before every answer, and before a new connection is read from.
        redirects: files lie behind redirects, as they do on the Hub.
        wait, wait_header: what a 429 asks for in its Retry-After, or another header, if anything.
        known: tokens that the Hub knows; any, where None.
        bare: no reply states a commit or an ETag, as those of a plain web server.
        listing: what is answered in place of every listing, if anything.
    """

    def __init__(self, *, latency: float = 0.0, handshake: float = 0.0, redirects: bool = True) -> None:
        self.latency = latency
        self.handshake = handshake
        self.redirects = redirects
        self.wait: str | None = "0"
        self.wait_header = "Retry-After"
        self.known: set[str] | None = None
        self.listing: bytes | None = None
        self.bare = False
        self.repos: dict[str, Repo] = {}
        self.faults: dict[str, Iterable[str | int]] = {}
        self.asked: list[Asked] = []
        self.connections = count()
        self.at_once = self.most_at_once = 0
        self.counting = threading.Lock()
        self._commits = count(1)
        self._hub = _Server(self, "hub", "127.0.0.1")
        self._cdn = _Server(self, "cdn", "localhost")
        self.url, self.cdn_url = self._hub.url, self._cdn.url

    def __enter__(self) -> FakeHub:
        for server in (self._hub, self._cdn):
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in (self._hub, self._cdn):
            server.shutdown()
            server.server_close()

    def add(self, name: str, files: Mapping[str, bytes | File], branch: str = "main", **access: Any) -> str:
        """Commit these files; the branch moves to the new commit, whose id is returned."""
        repo = self.repos.setdefault(name, Repo(**access))
        commit = f"{next(self._commits):040x}"
        repo.commits[commit] = {path: f if isinstance(f, File) else File(f) for path, f in files.items()}
        repo.branches[branch] = commit
        return commit

    def fault(self, key: str) -> str | int | None:
        faults = iter(self.faults.get(key, ()))
        self.faults[key] = faults
        return next(faults, None)

    def in_flight(self, change: int) -> None:
        with self.counting:
            self.at_once += change
            self.most_at_once = max(self.most_at_once, self.at_once)

    def count(self, word: str) -> int:
        """How many requests had this in their path."""
        return sum(word in asked.path for asked in self.asked)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, hub: FakeHub, role: str, host: str) -> None:
        super().__init__((host, 0), _Handler)
        self.hub = hub
        self.role = role
        self.url = f"http://{host}:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet
    disable_nagle_algorithm = (
        True  # as web servers do: else a reply of two packets waits 40 ms for the client's word
    )
    server: _Server

    def setup(self) -> None:
        super().setup()
        next(self.server.hub.connections)
        time.sleep(self.server.hub.handshake)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub = self.server.hub
        path = urlsplit(self.path).path
        headers = {key.lower(): value for key, value in self.headers.items()}
        self.asked = Asked(self.server.role, self.command, path, headers)
        hub.asked.append(self.asked)
        hub.in_flight(+1)
        try:
            time.sleep(hub.latency)
            self.answer(path)
        finally:
            hub.in_flight(-1)
        self.wfile.flush()

    # ------------------------------------------------------------ what is asked

    def answer(self, url: str) -> None:
        hub = self.server.hub
        if url == "/api/agent-harnesses":
            return self.json({"standardEnvVars": [], "harnesses": {}})
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(?:revision|tree)/([^/]+))?", url)
        file = re.fullmatch(
            r"(?:/cdn|/api/resolve-cache/models)?/([^/]+/[^/]+)/(?:resolve/)?([^/]+)/(.+)", url
        )
        asked = api or file
        name, revision, *path = map(unquote, asked.groups("main")) if asked else ("", "")
        at_cdn = self.server.role == "cdn"
        fault = hub.fault("api" if api else "cdn/" * at_cdn + "".join(path))
        if fault is not None and self.fails(fault):
            return None
        repo = hub.repos.get(name)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        allowed = repo is not None and (at_cdn or token in repo.allowed)
        if token and hub.known is not None and token not in hub.known:
            return self.refuse(401, "", "Invalid credentials in Authorization header")
        if repo is None or (repo.private and not allowed):
            return self.refuse(404 if token else 401, "RepoNotFound", "Repository not found")
        if repo.disabled:
            return self.refuse(403, "", "Access to this resource is disabled.")
        commit = repo.branches.get(revision, revision)
        if commit not in repo.commits:
            return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if api:
            return self.list(name, repo, commit, tree="/tree/" in url)
        if repo.gated and not allowed:
            return self.refuse(403 if token else 401, "GatedRepo", f"Access to model {name} is restricted.")
        if path[0] not in repo.commits[commit]:
            return self.refuse(404, "EntryNotFound", "Entry not found")
        return self.file(name, commit, path[0], repo.commits[commit][path[0]], fault)

    def list(self, name: str, repo: Repo, commit: str, *, tree: bool) -> None:
        stated = self.server.hub.listing
        if stated is not None:
            return self.send(200, {"Content-Type": "application/json"}, File(stated), 0, len(stated))
        entries = []
        for path, file in sorted(repo.commits[commit].items()):
            entry: dict[str, Any] = {"size": file.size}
            entry |= (
                {"type": "file", "path": path, "oid": file.oid}
                if tree
                else {"rfilename": path, "blobId": file.oid}
            )
            if _in_lfs(path, file):
                hash_key = "oid" if tree else "sha256"
                entry["lfs"] = {hash_key: file.sha256, "size": file.size, "pointerSize": 134}
            entries.append(entry)
        if tree:
            return self.json(entries)
        return self.json(
            {"id": name, "sha": commit, "gated": "manual" if repo.gated else False, "siblings": entries}
        )

    def file(self, name: str, commit: str, path: str, file: File, fault: str | int | None) -> None:
        hub = self.server.hub
        headers = {"X-Repo-Commit": commit, "ETag": f'"{file.oid}"', "Accept-Ranges": "bytes"}
        if hub.bare:
            headers = {}
        if _in_lfs(path, file) and not hub.bare:
            headers |= {"X-Linked-Size": str(file.size), "X-Linked-ETag": f'"{file.sha256}"'}
        if hub.redirects and "/resolve/" in self.path:
            if _in_lfs(path, file):
                return self.send(
                    302, {**headers, "Location": f"{hub.cdn_url}/cdn/{name}/{commit}/{path}?signature=secret"}
                )
            return self.send(
                307, {**headers, "Location": f"/api/resolve-cache/models/{name}/{commit}/{path}"}
            )
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if asked is None or fault == "ignore ranges":
            return self.send(200, headers, file, 0, file.size, fault)
        begin, end = int(asked[1]), min(int(asked[2]) + 1 if asked[2] else file.size, file.size)
        if begin >= file.size:
            return self.send(416, {"Content-Range": f"bytes */{file.size}"})
        begin += fault == "shifted"
        size = file.size + (fault == "grown")
        if fault != "unstated":
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
        if fault == "gzip":
            headers["Content-Encoding"] = "gzip"
        if fault == "short":
            end -= 1
        return self.send(206, headers, file, begin, end, fault)

    # ------------------------------------------------------------ what is answered

    def fails(self, fault: str | int) -> bool:
        """Whether the answer is the fault itself."""
        hub = self.server.hub
        if isinstance(fault, int):
            self.refuse(fault, "", "", {hub.wait_header: hub.wait} if hub.wait is not None else {})
        elif fault == "rate limit":
            self.refuse(429, "", "", {"RateLimit": '"resolvers";r=0;t=241'})
        elif fault == "reset":
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            self.close_connection = True
        elif fault in ("hang", "stall"):
            time.sleep(1 if fault == "hang" else 30)
            self.close_connection = True
        elif fault == "circle":
            self.send(302, {"Location": self.path})
        elif fault == "moved":
            self.send(307, {"Location": self.path})
        elif fault == "dead":
            self.send(302, {"Location": "http://127.0.0.1:9/file?signature=secret"})
        elif fault == "drip":
            self.send(200, {"Content-Length": "1000"})
            for _ in range(1000):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.02)
        elif fault == "list":
            self.json([])
        elif fault == "web page":
            page = b"<!DOCTYPE html><title>Sign in</title>"
            self.send(200, {"Content-Type": "text/html"}, File(page), 0, len(page))
        else:
            return False
        return True

    def json(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send(200, {"Content-Type": "application/json"}, File(body), 0, len(body))

    def refuse(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        """An error in the Hub's manner; what a careless server would do, it repeats the token it was sent."""
        echo = f" You sent {self.headers.get('Authorization')}."
        body = json.dumps({"error": message + echo}).encode()
        stated = {"X-Error-Code": code} if code else {}
        stated |= {"X-Error-Message": message or "Something failed." + echo}
        self.send(status, {**stated, **(headers or {})}, File(body), 0, len(body))

    def send(
        self,
        status: int,
        headers: Mapping[str, str],
        file: File | None = None,
        begin: int = 0,
        end: int = 0,
        fault: str | int | None = None,
    ) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(end - begin), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if file is None or self.command == "HEAD":
            return
        if fault == "cut":
            end = (begin + end) // 2
            self.close_connection = True
        for piece in file.pieces(begin, end):
            self.wfile.write(piece)
            self.asked.sent += len(piece)
            if fault == "slow":
                self.wfile.flush()
                time.sleep(0.01)


def _in_lfs(path: str, file: File) -> bool:
    return path.endswith(".safetensors") or file.size > SMALL
