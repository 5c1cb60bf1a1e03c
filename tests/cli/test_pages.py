"""What the pages say, against the facts of the three pages the atlas began from, restated here."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from atlas.evidence.check import check
from atlas.evidence.sources import Reader
from atlas.spec.library import Library

from .conftest import run


def test_the_matrices_of_one_component_are_told_apart() -> None:
    page = run("explain", "llama3.1-8b", "attention", "--json").json
    named = [row["component"] for row in page["accounting"]]
    assert named == ["attention.wq", "attention.wk", "attention.wv", "attention.wo"]


def test_the_vocabulary_projection_of_llama_3_1_8b() -> None:
    page = run("explain", "llama3.1-8b", "output", "--json").json
    assert (page["title"], page["kind"], page["node"]) == ("Vocabulary projection", "learned", "output")
    assert page["summary"]
    assert page["equation"]["text"] == "L = z W_outᵀ"
    assert page["equation"]["latex"].startswith("L = z")
    assert [value["text"] for value in page["inputs"]] == ["z [B batch, T positions, 4096 d]"]
    assert [value["text"] for value in page["outputs"]] == ["L [B batch, T positions, 128256 vocabulary]"]
    assert page["outputs"][0]["dtype"] == "F32"
    # 128,256 × 4,096 by hand: 128,000 × 4,096 = 524,288,000 and 256 × 4,096 = 1,048,576.
    assert page["accounting"] == [
        {
            "component": "Weight matrix",
            "calculation": "128,256 × 4,096 = 525,336,576",
            "parameters": 524_288_000 + 1_048_576,
        }
    ]
    notes = " ".join(page["notes"])
    for word in ("own", "[out, in]", "float32"):
        assert word in notes
    assert "Meta's catalogue entry" in page["rests_on"]
    relations = {(source["id"], source["repo"]): source["relation"] for source in page["sources"]}
    assert relations["model-readout", "meta-llama/llama3"] == "contextual"
    assert relations["model-readout", "meta-llama/llama-models"] == "direct"
    assert relations["catalogue/Llama3.1-8B", "meta-llama/llama-models"] == "direct"
    assert relations["linear-storage", "facebookresearch/fairscale"] == "operation"
    readout = next(
        s for s in page["sources"] if s["id"] == "model-readout" and s["repo"] == "meta-llama/llama3"
    )
    assert readout["lines"] == [[266, 269], [298, 302]], "the file has 302 lines"
    assert readout["revision"].startswith("a0940f9cf706")


def test_the_logits_of_llama_3_8b() -> None:
    page = run("explain", "llama3-8b", "logits", "--json").json
    assert (page["title"], page["kind"], page["node"]) == ("Logits", "activation", "output.logits")
    assert [value["text"] for value in page["outputs"]] == ["L [B batch, T positions, 128256 vocabulary]"]
    direct = {source["id"] for source in page["sources"] if source["relation"] == "direct"}
    assert {"logits-cast", "model-readout", "catalogue/Llama-3-8B"} <= direct
    assert all(last <= 302 for s in page["sources"] if s["source"] == "llama3" for _, last in s["lines"])


def test_the_token_embedding_and_the_top_of_llama_3_1() -> None:
    page = run("explain", "llama3.1-8b", "tok_embeddings", "--json").json
    assert [value["text"] for value in page["inputs"]] == ["I [B batch, T positions]"]
    assert [value["text"] for value in page["outputs"]] == ["x₀ [B batch, T positions, 4096 d]"]
    assert page["accounting"][0]["parameters"] == 128_256 * 4_096
    assert any("only through the rotation" in note for note in page["notes"])
    top = run("explain", "llama3.1-8b", "--json").json
    assert top["kind"] == "model"
    assert (top["facts"]["publisher"], top["facts"]["follows"], top["facts"]["released"]) == (
        "Meta",
        "llama3",
        "2024-07",
    )
    assert sum(row["parameters"] for row in top["accounting"]) == top["parameters"]


def test_a_tied_model_says_so_on_both_pages() -> None:
    assert any(
        "same matrix" in note
        for note in run("explain", "llama3.2-1b", "tok_embeddings", "--json").json["notes"]
    )
    output = run("explain", "llama3.2-1b", "output", "--json").json
    assert output["parameters"] == 0
    assert any(note.startswith("Tied") for note in output["notes"])


def test_conflicts_stand_on_the_model_page() -> None:
    notes = " ".join(run("explain", "llama2-7b", "--json").json["notes"])
    assert "n_kv_heads: the catalogue has 8, the released model has 32" in notes


@pytest.fixture
def planted(tmp_path: Path) -> tuple[Path, Path]:
    """A specs folder that pins three lines of a file, and the file."""
    file = tmp_path / "code.py"
    file.write_text("first\nsecond\nthird\n")
    sha = hashlib.sha256(b"second\nthird\n").hexdigest()
    specs = tmp_path / "specs" / "bibliography"
    specs.mkdir(parents=True)
    (specs / "planted.toml").write_text(
        '[sources.planted]\nkind = "git"\nrole = "reference"\ntitle = "planted"\nrepo = "a/b"\nrevision = ""\npath = "code.py"\n'
        f'[cites.planted]\nclaim = "second, then third"\nat = ["planted 2-3 sha256:{sha}"]\n'
    )
    return tmp_path / "specs", file


def checked(specs: Path, *more: str) -> tuple[int, dict[str, str]]:
    ran = run("evidence", "check", "--offline", "--json", "--specs", str(specs), *more)
    return ran.code, {check["cite"]: check["status"] for check in ran.json["checks"]}


def test_evidence_holds_differs_or_is_unchecked(planted: tuple[Path, Path]) -> None:
    specs, file = planted
    assert checked(specs)[1]["planted"] == "unchecked"
    assert checked(specs, "--strict")[0] == 1
    code, status = checked(specs, "--source", f"planted={file}")
    assert (code, status["planted"]) == (0, "ok")
    file.write_text("first\nsecond\nthird, changed\n")
    code, status = checked(specs, "--source", f"planted={file}")
    assert (code, status["planted"]) == (1, "differs")
    file.write_text("first\nsecond\n")
    ran = run("evidence", "check", "--offline", "--specs", str(specs), "--source", f"planted={file}")
    assert "the file has 2" in ran.out


def test_an_excerpt_is_shown_only_after_its_hash_is_checked(tmp_path: Path) -> None:
    wrong = tmp_path / "model.py"
    wrong.write_text("\n".join(f"line {i}" for i in range(400)))
    ran = run("explain", "llama3-8b", "logits", "--source", f"llama3={wrong}")
    assert ran.code == 2
    assert "sha256" in ran.err
    assert "line 300" not in ran.out


def test_meta_s_own_files_hold_what_is_cited() -> None:
    pytest.importorskip(
        "llama_models", reason="the catalogue and the reference code are read from the installed package"
    )
    pytest.importorskip("fairscale", reason="its layers are read from the installed package")
    ran = run("evidence", "check", "--offline", "--json")
    assert ran.code == 0
    sources = {check["source"] for check in ran.json["checks"] if check["status"] == "ok"}
    assert {"llama-models/model", "llama-models/sku_list", "llama-models/sku_types", "fairscale"} <= sources


class Served(BaseHTTPRequestHandler):
    """Serves files by path, as the hosts of pinned sources do."""

    files: ClassVar[dict[str, bytes]] = {}
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = self.files.get(self.path)
        self.send_response(200 if body is not None else 404)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *arguments: object) -> None:
        """Keeps quiet."""


@pytest.fixture
def web() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Served.files, Served.asked = {}, []
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_what_is_not_at_hand_is_read_from_the_web_at_its_revision(
    planted: tuple[Path, Path], web: str
) -> None:
    specs, _ = planted
    bibliography = specs / "bibliography" / "planted.toml"
    bibliography.write_text(
        bibliography.read_text().replace('revision = ""', f'revision = "{"ab" * 20}"')
        + '[sources.config]\nkind = "hub"\nrole = "checkpoint"\ntitle = "c"\nrepo = "c/d"\nrevision = "cdef012"\npath = "config.json"\n'
        '[cites.config]\nclaim = "four heads"\nat = ["config"]\nvalues = { heads = 4 }\n'
    )
    reader = Reader(Library(specs), {}, web=True, github=web, hub=web)
    Served.files = {
        f"/a/b/{'ab' * 20}/code.py": b"first\nsecond\nthird\n",
        "/c/d/resolve/cdef012/config.json": b'{"heads": 4}',
    }
    status = {item.cite: item.status for item in check(reader).checks}
    assert (status["planted"], status["config"]) == ("ok", "ok")
    Served.files["/c/d/resolve/cdef012/config.json"] = b'{"heads": 5}'
    again = {
        item.cite: item for item in check(Reader(Library(specs), {}, web=True, github=web, hub=web)).checks
    }
    assert again["config"].status == "differs"
    assert "heads is 5, recorded 4" in again["config"].detail


def test_a_host_that_cannot_be_reached_is_asked_once() -> None:
    reader = Reader(Library(), {}, web=True, github="http://127.0.0.1:9", hub="http://127.0.0.1:9")
    details = {item.detail for item in check(reader).checks if item.source.startswith("hub/")}
    assert len(details) == 1
    assert "could not be reached" in details.pop()


def test_a_source_that_does_not_hold_what_is_cited_is_told(tmp_path: Path) -> None:
    ran = run("explain", "llama3-8b", "logits", "--source", f"llama3={tmp_path}")
    assert ran.code == 0
    assert ran.err.startswith(f"warning: --source llama3: {tmp_path} does not contain llama/model.py")
