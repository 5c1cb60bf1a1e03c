"""A server on loopback that answers each request with the bytes that a test gives it: malformed, endless, slow or hostile."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping

COMMIT = "a" * 40
Answer = Callable[[str, Mapping[str, str]], Iterable[bytes]]


class RawHub:
    """Every request goes to `answer(path, headers)`, whose pieces are sent as they are; then the connection is closed.

    Attributes:
        asked: the path and the headers of every request.
        sent: bytes of all answers.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.answer: Answer = lambda path, headers: [reply(404)]
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.sent = 0
        self._listener = socket.create_server((host, 0), backlog=64)
        self.url = f"http://{host}:{self._listener.getsockname()[1]}"

    def __enter__(self) -> RawHub:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    head += piece
                lines = head.split(b"\r\n\r\n")[0].decode("latin1").split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
                path = lines[0].split(" ")[1]
                self.asked.append((path, headers))
                for piece in self.answer(path, headers):
                    connection.sendall(piece)
                    self.sent += len(piece)
            except OSError:
                return


def reply(status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """An answer with its length; a header of this name replaces it."""
    stated = {"Content-Length": str(len(body)), "Connection": "close", **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in stated.items())
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode("latin1") + body


def listing(files: Mapping[str, int], commit: str = COMMIT) -> bytes:
    """A listing of these files and sizes, none of them in LFS."""
    entries = [{"rfilename": name, "size": size, "blobId": "b" * 40} for name, size in files.items()]
    return json.dumps({"id": "evil/repo", "sha": commit, "siblings": entries}).encode()


def honest(files: Mapping[str, bytes]) -> Answer:
    """The answers of a Hub that has these files."""

    def answer(path: str, headers: Mapping[str, str]) -> list[bytes]:
        if path.startswith("/api/"):
            return [reply(200, listing({name: len(data) for name, data in files.items()}))]
        data = files.get(path.rpartition("/")[2])
        if data is None:
            return [reply(404, headers={"X-Error-Code": "EntryNotFound"})]
        asked = headers.get("range", "").removeprefix("bytes=").partition("-")
        if not asked[1]:
            return [reply(200, data, {"X-Repo-Commit": COMMIT})]
        begin, end = int(asked[0]), min(int(asked[2]) + 1, len(data))
        return [reply(206, data[begin:end], {"Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"})]

    return answer
