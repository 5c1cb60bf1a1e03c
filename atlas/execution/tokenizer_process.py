"""The parent's side of the child process that runs the tokenizers library: requests, replies and failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from atlas.errors import CheckpointError
from atlas.execution.tokenizer_worker import LENGTH_BYTES

SECONDS = 60.0
"""How long one request may take, plus the time for its size."""

SECONDS_PER_BYTE = 20 / 2**20
"""Additional time per byte of a request: a hundred times what a slow tokenizer takes."""

MOST_REPLY_BYTES = 128 * 2**20
"""Of one reply: the ids of more than ten million tokens."""

_WORKER = Path(__file__).with_name("tokenizer_worker.py")


class TokenizerProcess:
    """A tokenizer.json, loaded by a child process that runs until `close`.

    The constructor returns while the process is still loading. A fault in the file is raised by the first request.

    Args:
        where: the file's path, for messages.
        file: its content.
        hint: what to try if it cannot be used.
    """

    def __init__(self, where: str, file: bytes, *, hint: str) -> None:
        self._where, self._hint = where, hint
        self._seconds = SECONDS + SECONDS_PER_BYTE * len(file)
        package = find_spec("tokenizers")
        if package is None or not package.origin:
            raise self._failed("the package tokenizers is not installed")
        settings = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
        folder, alarm = str(Path(package.origin).parent.parent), str(int(self._seconds) + 60)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_WORKER), folder, alarm],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=os.environ | settings,
            )
        except (OSError, ValueError) as error:
            raise self._failed(f"its process cannot be started: {error}") from None
        self.close = weakref.finalize(self, _end, self._process)
        self._loading = True
        self._saved_settings: dict[str, Any] = {}
        self._send(file)

    @property
    def saved_settings(self) -> dict[str, Any]:
        """The file's `truncation` and `padding`; neither is applied.

        Raises:
            CheckpointError: the library cannot load the file.
        """
        if self._loading:
            self._saved_settings = self._reply(self._seconds)
            self._loading = False
        return self._saved_settings

    def ask(self, do: str, **arguments: Any) -> Any:
        """Call a method of `tokenizer_worker.Served` and return its value.

        Raises:
            CheckpointError: the library refuses, crashes, takes too much memory or does not answer.
        """
        _ = self.saved_settings
        request = json.dumps({"do": do, "with": arguments}).encode()
        self._send(request)
        return self._reply(self._seconds + SECONDS_PER_BYTE * len(request))

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # a process that has ended is reported where its reply is read
            self._process.stdin.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
            self._process.stdin.flush()

    def _reply(self, seconds: float) -> Any:
        late = threading.Event()
        watch = threading.Timer(seconds, _end_late, (self._process, late))
        watch.daemon = True
        try:
            watch.start()
            reply = self._read()
        except (RuntimeError, MemoryError):  # no memory for a thread
            self.close()
            raise self._failed("out of memory") from None
        except BaseException:
            self.close()
            raise
        finally:
            watch.cancel()
        if reply is None:
            reason = f"no answer within {seconds:,.0f} seconds" if late.is_set() else self._death()
            raise self._failed(reason)
        if "error" in reply:
            raise self._failed(" ".join(reply["error"].split())[:200])
        return reply["value"]

    def _read(self) -> dict[str, Any] | None:
        """The next reply; None if the process ended without one."""
        assert self._process.stdout is not None
        head = self._process.stdout.read(LENGTH_BYTES)
        length = int.from_bytes(head, "little")
        if length > MOST_REPLY_BYTES:
            self.close()
            raise self._failed(f"its answer has more than {MOST_REPLY_BYTES:,} bytes")
        data = self._process.stdout.read(length)
        if len(head) < LENGTH_BYTES or len(data) < length:
            return None
        found: dict[str, Any] = json.loads(data)
        return found

    def _death(self) -> str:
        """Why the process ended."""
        assert self._process.stderr is not None
        code = self._process.wait()
        stderr = self._process.stderr.read(4096).decode("utf-8", "replace")
        if "memory allocation of" in stderr or "MemoryError" in stderr:
            return "out of memory"
        with suppress(ValueError):
            return f"the tokenizers library crashed ({signal.Signals(-code).name})"
        return f"the tokenizers library ended with exit code {code}"

    def _failed(self, reason: str) -> CheckpointError:
        return CheckpointError(f"{self._where} cannot be used as a tokenizer: {reason}", hint=self._hint)


def _end_late(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
