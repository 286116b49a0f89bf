"""A stand-in for the Hugging Face Hub: its HTTP interface, in memory, on this machine.

It serves what `huggingface_hub` asks for when a folder is uploaded and downloaded: a
new repository, its card's check, preupload, Git LFS' batches, commit, tree, resolve.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """One request; the server has `files` by repository, and `objects` by hash."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        text, path = self.body(), self.path.split("?")[0]
        if path == "/api/repos/create":
            name = json.loads(text)
            owner = name.get("organization") or "someone"
            return self.answer({"url": f"{self.address}/{owner}/{name['name']}"})
        if path == "/api/validate-yaml":
            return self.validate(json.loads(text)["content"])
        if path.endswith("/info/lfs/objects/batch"):
            return self.answer(
                {"objects": [*map(self.upload, json.loads(text)["objects"])]}
            )
        if "/preupload/" in path:
            files = [
                {"path": each["path"], **mode(each)}
                for each in json.loads(text)["files"]
            ]
            return self.answer({"files": files})
        repository = re.fullmatch("/api/models/(.+)/commit/main", path)
        return self.commit(repository[1], text) if repository else self.missing()

    def do_PUT(self) -> None:
        data = self.body()
        self.server.objects[self.path.rpartition("/")[2]] = data
        self.answer({})

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if match := re.fullmatch("/api/models/(.+)/(revision|tree)/.+", path):
            return self.tell(self.server.files.get(match[1]), *match.groups())
        match = re.fullmatch("/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path)
        data = match and self.server.files.get(match[1], {}).get(match[2])
        return self.missing() if data is None else self.send(data)

    do_HEAD = do_GET

    # -- parts -------------------------------------------------------------------------

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def validate(self, content: str) -> None:
        """As the Hub's own checker: YAML between two lines of dashes, or a warning."""
        head = re.match("---\n(.*?)\n---\n", content, re.S)
        facts = yaml.safe_load(head[1]) if head else None
        named = isinstance(facts, dict) and {"library_name", "pipeline_tag"} <= {*facts}
        self.answer({"warnings": [] if named else [{"message": "empty metadata"}]})

    def upload(self, entry: dict) -> dict:
        href = f"{self.address}/objects/{entry['oid']}"
        return entry | {"actions": {"upload": {"href": href, "header": {}}}}

    def commit(self, repository: str, text: bytes) -> None:
        files = self.server.files.setdefault(repository, {})
        for line in map(json.loads, text.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                data = self.server.objects[value["oid"]]
                assert hashlib.sha256(data).hexdigest() == value["oid"]
                files[value["path"]] = data
        url = f"{self.address}/{repository}/commit/{COMMIT}"
        self.answer({"commitUrl": url, "commitOid": COMMIT, "success": True})

    def tell(self, files: dict | None, repository: str, what: str) -> None:
        """What there is in a repository, in the client's two ways of asking."""
        if files is None:
            return self.missing()
        sizes = [
            {"type": "file", "path": name, "size": len(data), "oid": "0" * 40}
            for name, data in files.items()
        ]
        names = [{"rfilename": name} for name in files]
        about = {"id": repository, "sha": COMMIT, "siblings": names}
        return self.answer(sizes if what == "tree" else about)

    def answer(self, value: dict | list, status: int = 200) -> None:
        self.send(json.dumps(value).encode(), status, "application/json")

    def missing(self) -> None:
        self.answer({"error": "Repository not found"}, 404)

    def send(self, data: bytes, status: int = 200, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def mode(entry: dict) -> dict:
    large = entry["path"].endswith(".safetensors")
    return {"uploadMode": "lfs" if large else "regular", "shouldIgnore": False}


@contextmanager
def local_hub() -> Iterator[ThreadingHTTPServer]:
    """A server on a free port, with `files` that were committed."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.files, server.objects = {}, {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
