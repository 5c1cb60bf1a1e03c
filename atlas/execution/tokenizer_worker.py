"""The program of the child process that runs the tokenizers library; `tokenizer_process` starts it.

The library is native code that reads an untrusted file. Some files make it panic, abort the process, allocate without
limit or never return. In a child process the parent can report each of these, and end it.

Requests and replies alternate. Each is a frame: its length in eight little-endian bytes, then its content. The first request
is the content of the tokenizer.json; all others and every reply are JSON. A reply has `value` or `error`.

The process runs isolated (`python -I -S`), so no module of the atlas can be imported here.
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
"""Address space for any prompt and any decoded text. A prompt of a million tokens takes about a tenth of it."""
MEMORY_PER_FILE_BYTE = 24
"""Address space per byte of the file. A BPE of 300,000 tokens was measured to take 7."""


class Served:
    """A tokenizer that tokenizes every prompt whole: the truncation and padding saved in the file are not applied."""

    def __init__(self, file: bytes) -> None:
        from tokenizers import Tokenizer

        self.backend = Tokenizer.from_buffer(file)
        self.saved_settings = {"truncation": self.backend.truncation, "padding": self.backend.padding}
        self.backend.no_truncation()
        self.backend.no_padding()
        self.before: list[int] = []
        self.before_text: dict[bool, str] = {}

    def ids(self, tokens: list[str]) -> list[int | None]:
        return [self.backend.token_to_id(token) for token in tokens]

    def tokens(self, ids: list[int]) -> list[str | None]:
        return [self.backend.id_to_token(id) for id in ids]

    def encode(self, text: str, most: int) -> dict[str, Any]:
        """The ids of a text, their number, and the first of the ids that the post-processor adds to an empty text.

        Args:
            most: ids; if there are more, they are only counted: a list of millions takes time and memory in both processes.
        """
        encoding = self.backend.encode(text)
        ids = encoding.ids if len(encoding) <= most else []
        return {"count": len(encoding), "ids": ids, "added": self.backend.encode("").ids[:1]}

    def context(self, ids: list[int]) -> None:
        """Set the ids that precede those decoded from now on."""
        self.before, self.before_text = ids, {}

    def decode(self, texts: list[list[int]], special: bool) -> list[str]:
        """What each list of ids adds to the text of the ids before it.

        Many decoders drop a space at the start of a text, so ids are decoded together with those before them.
        """
        if special not in self.before_text:
            self.before_text[special] = self._text(self.before, special)
        before = self.before_text[special]
        wholes = ((ids, self._text([*self.before, *ids], special)) for ids in texts)
        return [
            whole[len(before) :] if whole.startswith(before) else self._text(ids, special)
            for ids, whole in wholes
        ]

    def _text(self, ids: list[int], special: bool) -> str:
        text: str = self.backend.decode(ids, skip_special_tokens=not special)
        return text


def serve(requests: BinaryIO, replies: BinaryIO, seconds: int) -> None:
    """Answer requests until there are no more.

    Args:
        seconds: after which a request ends the process, in case its parent no longer exists.
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
                reply = {"value": served.saved_settings}
            else:
                asked = json.loads(request)
                reply = {"value": getattr(served, asked["do"])(**asked["with"])}
        except BaseException as error:  # pyo3's PanicException is not a subclass of Exception
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
    """Limit the address space where the system supports it, and disable core dumps."""
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
    """Arguments: the folder that contains the tokenizers package, and the seconds a request may take."""
    # What the library prints must not mix with the replies; and nothing reads its messages while it runs, so writing
    # one must not block.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(OSError, AttributeError):
        os.set_blocking(2, False)
    if os.name == "posix":  # the parent handles Ctrl-C and ends this process
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.append(sys.argv[1])
    serve(sys.stdin.buffer, replies, int(sys.argv[2]))


if __name__ == "__main__":
    main()
