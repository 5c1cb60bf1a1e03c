"""The program of the child process in which the tokenizers library runs; `tokenizer_process` starts it.

The library is native code that reads a stranger's file: it panics, aborts the process, grows without end or never returns
for some of them. In a process of its own that is a failure its parent can name and end.

Requests and replies alternate, each as a frame: eight bytes of length, little-endian, then as many bytes. The first request
is the content of the tokenizer.json, all others and every reply are JSON. A reply has `value` or `error`.

The process runs isolated (`python -I -S`), so nothing of the atlas can be imported here.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any, BinaryIO

LENGTH_BYTES = 8
BASE_MEMORY_BYTES = 4 * 2**30
"""Address space that any prompt and any decoded text may take; a prompt of a million tokens takes about a tenth of it."""
MEMORY_PER_FILE_BYTE = 24
"""Address space for each byte of the file. A BPE of 300,000 tokens was measured to take 7."""


class Served:
    """A tokenizer that reads every prompt whole: what the file saves of truncation and padding is not applied."""

    def __init__(self, file: bytes) -> None:
        from tokenizers import Tokenizer

        self.backend = Tokenizer.from_buffer(file)
        self.asks = {"truncation": self.backend.truncation, "padding": self.backend.padding}
        self.backend.no_truncation()
        self.backend.no_padding()
        self.before: list[int] = []
        self.begun: dict[bool, str] = {}

    def ids(self, tokens: list[str]) -> list[int | None]:
        return [self.backend.token_to_id(token) for token in tokens]

    def token(self, id: int) -> str | None:
        found: str | None = self.backend.id_to_token(id)
        return found

    def encode(self, text: str) -> dict[str, list[int]]:
        """The ids of a text, and those that the post-processor adds to an empty one."""
        return {"ids": self.backend.encode(text).ids, "added": self.backend.encode("").ids}

    def context(self, ids: list[int]) -> None:
        """The ids that those decoded from now on follow."""
        self.before, self.begun = ids, {}

    def decode(self, texts: list[list[int]], special: bool) -> list[str]:
        """What each of some lists of ids adds to the text of the ids before it.

        Many decoders drop a space at the very beginning of a text, so ids are decoded with those before them.
        """
        if special not in self.begun:
            self.begun[special] = self._text(self.before, special)
        begun = self.begun[special]
        wholes = ((ids, self._text([*self.before, *ids], special)) for ids in texts)
        return [
            whole[len(begun) :] if whole.startswith(begun) else self._text(ids, special)
            for ids, whole in wholes
        ]

    def _text(self, ids: list[int], special: bool) -> str:
        text: str = self.backend.decode(ids, skip_special_tokens=not special)
        return text


def serve(requests: BinaryIO, replies: BinaryIO, seconds: int) -> None:
    """Answer until the requests end.

    Args:
        seconds: after which one request ends the process, if its parent has not: it may have been killed.
    """
    served: Served | None = None
    while (request := _read(requests)) is not None:
        if hasattr(signal, "alarm"):
            signal.alarm(seconds)
        reply: dict[str, Any]
        try:
            if served is None:
                _limit_memory(len(request))
                served = Served(request)
                reply = {"value": served.asks}
            else:
                asked = json.loads(request)
                reply = {"value": getattr(served, asked["do"])(**asked["with"])}
        except BaseException as error:  # pyo3's PanicException is no Exception
            reply = {"error": str(error)[:2000] or type(error).__name__}
        data = json.dumps(reply).encode()
        if hasattr(signal, "alarm"):
            signal.alarm(0)
        replies.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
        replies.flush()
        if served is None:
            return


def _read(requests: BinaryIO) -> bytes | None:
    length = int.from_bytes(requests.read(LENGTH_BYTES), "little")
    return requests.read(length) if length else None


def _limit_memory(file_bytes: int) -> None:
    """Limit the address space where the system can, and write no core dump of a crash."""
    try:
        import resource
    except ImportError:
        return
    wanted = BASE_MEMORY_BYTES + MEMORY_PER_FILE_BYTE * file_bytes
    for kind, most in ((resource.RLIMIT_AS, wanted), (resource.RLIMIT_CORE, 0)):
        with suppress(OSError, ValueError):
            soft, hard = resource.getrlimit(kind)
            bounds = [bound for bound in (most, soft) if bound != resource.RLIM_INFINITY]
            resource.setrlimit(kind, (min(bounds), hard))


def main() -> None:
    """The arguments: the folder the tokenizers package lies in, and the seconds a request may take."""
    # What the library prints must not get between the replies; and nobody reads its messages while it runs, so that
    # writing one must not wait.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(OSError, AttributeError):
        os.set_blocking(2, False)
    if os.name == "posix":  # the parent hears Ctrl-C, and ends this process
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.append(sys.argv[1])
    serve(sys.stdin.buffer, replies, int(sys.argv[2]))


if __name__ == "__main__":
    main()
