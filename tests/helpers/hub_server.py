"""A stand-in for the Hugging Face Hub that speaks its protocol: what `huggingface_hub` asks for
when agents are pushed and pulled, large files by LFS and a redirect. It can lie and break off."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml  # type: ignore[import-untyped]

from warpzone.run.shipped import pulled_folder

TOKEN = "hf_standin0123456789"
USER = "somebody"
#: Kept outside of git by the real Hub as well.
LARGE = (".safetensors", ".onnx", ".mp4")


@dataclass
class Repo:
    """A repository: its newest files."""

    files: dict[str, bytes] = field(default_factory=dict)
    private: bool = False
    messages: list[str] = field(default_factory=list)
    #: Sizes that are stated instead of the true ones.
    sizes: dict[str, int | None] = field(default_factory=dict)

    @property
    def commit(self) -> str:
        return hashlib.sha1(repr(sorted(self.files.items())).encode()).hexdigest()


class Hub:
    """What the server knows, and what it was asked."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.large: dict[str, bytes] = {}
        self.asked: list[str] = []
        #: Headers of requests that carried a token, by path.
        self.authorized: dict[str, str] = {}
        #: Bodies end after so many bytes, and the connection with them, for paths with this text.
        self.breaks: dict[str, int] = {}
        #: Paths with this text get this status.
        self.refuses: dict[str, int] = {}
        self.url = ""

    def forget(self) -> None:
        """As if nobody had ever been here."""
        for kept in (self.repos, self.large, self.authorized, self.breaks, self.refuses):
            kept.clear()
        self.asked.clear()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, format: str, *args: Any) -> None:
        pass

    # --- what is asked -----------------------------------------------------------------------
    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.hub.asked.append(f"{self.command} {path}")
        if given := self.headers.get("authorization"):
            self.hub.authorized[path] = given
        for text, status in self.hub.refuses.items():
            if text in path:
                self._json({"error": "refused"}, status)
                return
        if given not in (None, f"Bearer {TOKEN}"):
            self._error(401, "", "Invalid credentials in Authorization header")
            return
        for pattern, method, act in ROUTES:
            found = re.fullmatch(pattern, path)
            if found and self.command in method:
                act(self, body, **found.groupdict())
                return
        self._error(404, "RepoNotFound", f"no route for {self.command} {path}")

    def _mine(self) -> bool:
        """Writing needs a token."""
        if self.headers.get("authorization"):
            return True
        self._error(401, "", "Invalid username or password.")
        return False

    # --- pushing -----------------------------------------------------------------------------
    def whoami(self, body: bytes) -> None:
        if self._mine():
            self._json({"type": "user", "name": USER, "orgs": [], "auth": {"type": "token"}})

    def create(self, body: bytes) -> None:
        if not self._mine():
            return
        asked = json.loads(body)
        owner = asked.get("organization") or USER
        repo = f"{owner}/{asked['name']}"
        if owner != USER:
            self._error(403, "", "You don't have the rights to create a model under this namespace")
        elif repo in self.hub.repos:
            self._json({"error": "You already created this model repo", "url": self._at(repo)}, 409)
        else:
            self.hub.repos[repo] = Repo(private=asked.get("visibility") == "private")
            self._json({"url": self._at(repo), "name": repo, "id": "1"})

    def validate(self, body: bytes) -> None:
        text = json.loads(body)["content"]
        front = re.match(r"---\n(.*?)\n---\n", text, re.S)
        data = yaml.safe_load(front[1]) if front else None
        errors = [] if isinstance(data, dict) else [{"message": "metadata is missing"}]
        for result in (data or {}).get("model-index", [{"results": []}])[0]["results"]:
            if not {"task", "dataset", "metrics"} <= result.keys():
                errors.append({"message": "a result is incomplete"})
        self._json({"errors": errors, "warnings": []}, 400 if errors else 200)

    def preupload(self, body: bytes, repo: str) -> None:
        files = [
            {
                "path": one["path"],
                "uploadMode": "lfs" if one["path"].endswith(LARGE) else "regular",
                "shouldIgnore": False,
                "oid": None,
            }
            for one in json.loads(body)["files"]
        ]
        self._json({"files": files})

    def batch(self, body: bytes, repo: str) -> None:
        actions = {
            "upload": {"href": f"{self.hub.url}/lfs/{{oid}}", "header": {}},
            "verify": {"href": f"{self.hub.url}/lfs-verify", "header": {}},
        }
        objects = [
            {**one, "actions": json.loads(json.dumps(actions).replace("{oid}", one["oid"]))}
            for one in json.loads(body)["objects"]
        ]
        self._json({"transfer": "basic", "objects": objects})

    def upload(self, body: bytes, oid: str) -> None:
        if hashlib.sha256(body).hexdigest() != oid:
            self._error(400, "", "the content has another hash")
        else:
            self.hub.large[oid] = body
            self._send(200, b"")

    def verify(self, body: bytes) -> None:
        asked = json.loads(body)
        there = len(self.hub.large.get(asked["oid"], b"")) == asked["size"]
        self._json({}, 200 if there else 404)

    def commit(self, body: bytes, repo: str) -> None:
        if not self._mine():
            return
        kept = self.hub.repos[repo]
        for line in body.decode().splitlines():
            one = json.loads(line)
            kind, value = one["key"], one["value"]
            if kind == "header":
                kept.messages.append(value["summary"])
            elif kind == "file":
                kept.files[value["path"]] = base64.b64decode(value["content"])
            elif kind == "lfsFile":
                kept.files[value["path"]] = self.hub.large[value["oid"]]
            elif kind == "deletedFile":
                del kept.files[value["path"]]
        oid = kept.commit
        self._json(
            {"success": True, "commitOid": oid, "commitUrl": f"{self._at(repo)}/commit/{oid}"}
        )

    # --- pulling -----------------------------------------------------------------------------
    def info(self, body: bytes, repo: str, revision: str | None = None) -> None:
        kept = self._repo(repo)
        if kept is None:
            return
        if revision not in (None, "main", kept.commit):
            self._error(404, "RevisionNotFound", "Invalid rev id")
            return
        siblings = [
            {"rfilename": name, "size": kept.sizes.get(name, len(content))}
            for name, content in kept.files.items()
        ]
        about = {"_id": "1", "id": repo, "modelId": repo, "sha": kept.commit, "tags": []}
        self._json({**about, "private": kept.private, "siblings": siblings})

    def resolve(self, body: bytes, repo: str, revision: str, file: str) -> None:
        kept = self._repo(repo)
        if kept is None:
            return
        if file not in kept.files:
            self._error(404, "EntryNotFound", "Entry not found")
            return
        content = kept.files[file]
        size = kept.sizes.get(file, len(content))
        etag = hashlib.sha256(content).hexdigest()
        headers = {"X-Repo-Commit": kept.commit, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
        if file.endswith(LARGE):
            headers |= {"X-Linked-Size": str(size), "X-Linked-ETag": f'"{etag}"'}
            # Another host than the Hub, which is not to see the token.
            place = self.hub.url.replace("127.0.0.1", "localhost")
            headers["Location"] = f"{place}/cdn/{repo}/{file}"
            self._send(302, b"", headers)
        else:
            self._send(200, content, headers)

    def cdn(self, body: bytes, repo: str, file: str) -> None:
        self._send(200, self.hub.repos[repo].files[file], {})

    # --- answers -----------------------------------------------------------------------------
    def _repo(self, repo: str) -> Repo | None:
        """A repository that whoever asks may see."""
        kept = self.hub.repos.get(repo)
        if kept is None or (kept.private and not self.headers.get("authorization")):
            status = 404 if self.headers.get("authorization") else 401
            self._error(status, "RepoNotFound" if status == 404 else "", "Repository not found")
            return None
        return kept

    def _at(self, repo: str) -> str:
        return f"{self.hub.url}/{repo}"

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _error(self, status: int, code: str, message: str) -> None:
        headers = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {})}
        self._send(status, json.dumps({"error": message}).encode(), headers)

    def _send(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "HEAD":
            return
        for text, most in self.hub.breaks.items():
            if text in self.path:
                self.wfile.write(content[:most])
                self.wfile.flush()
                self.close_connection = True
                return
        self.wfile.write(content)


_REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"
ROUTES: tuple[tuple[str, tuple[str, ...], Any], ...] = (
    (r"/api/whoami-v2", ("GET",), _Handler.whoami),
    (r"/api/repos/create", ("POST",), _Handler.create),
    (r"/api/validate-yaml", ("POST",), _Handler.validate),
    (rf"/api/models/{_REPO}/preupload/main", ("POST",), _Handler.preupload),
    (rf"/{_REPO}\.git/info/lfs/objects/batch", ("POST",), _Handler.batch),
    (r"/lfs/(?P<oid>[0-9a-f]{64})", ("PUT",), _Handler.upload),
    (r"/lfs-verify", ("POST",), _Handler.verify),
    (rf"/api/models/{_REPO}/commit/main", ("POST",), _Handler.commit),
    (rf"/api/models/{_REPO}", ("GET",), _Handler.info),
    (rf"/api/models/{_REPO}/revision/(?P<revision>[^/]+)", ("GET",), _Handler.info),
    (rf"/{_REPO}/resolve/(?P<revision>[^/]+)/(?P<file>.+)", ("GET", "HEAD"), _Handler.resolve),
    (rf"/cdn/{_REPO}/(?P<file>.+)", ("GET", "HEAD"), _Handler.cdn),
)


@contextlib.contextmanager
def serving() -> Iterator[Hub]:
    """The server, until the block is left."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        hub.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()


def kept() -> list[str]:
    """The files of agents that were pulled."""
    folder = pulled_folder()
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def point_at(monkeypatch: pytest.MonkeyPatch, url: str, token: str = TOKEN) -> None:
    """What HF_ENDPOINT and HF_TOKEN do to a process that starts with them; the library reads the
    first of them only once. Large files go through LFS: no stand-in speaks Xet."""
    from huggingface_hub import constants
    from huggingface_hub.utils import close_session  # type: ignore[attr-defined]

    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", token)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    close_session()
