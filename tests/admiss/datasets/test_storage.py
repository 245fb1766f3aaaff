"""Raw files from a folder, the cache and the network; failing servers, disks and processes."""

import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pooch
import pytest

from admiss.datasets.paper import storage
from admiss.datasets.paper.storage import DataFile, DataUnavailableError, cache_folder, read_file

CONTENT = b"1.0,?,e\r\n" * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PATH = "uci/mushroom/agaricus-lepiota.data"
ROOT = Path(storage.__file__).parents[3]


def requests_of(server, expected):
    """How many requests came in; a thread of a busy server may take one after its client has given up."""
    give_up = time.monotonic() + 10
    while len(server.requested) < expected and time.monotonic() < give_up:
        time.sleep(0.01)
    return len(server.requested)


class Handler(BaseHTTPRequestHandler):
    """Responses of a server, by the path of the URL."""

    def do_GET(self):
        self.server.requested.append(self.path)
        getattr(self, "do_" + self.path.strip("/").replace("-", "_"))()

    def respond(self, content, length=None, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def do_good(self):
        self.respond(CONTENT)

    def do_wrong(self):
        self.respond(b"<html>Sign in to the wireless network</html>")

    def do_cut(self):
        self.respond(CONTENT[:20_000], length=len(CONTENT))

    def do_absent(self):
        self.respond(b"not found", status=404)

    def do_broken(self):
        self.respond(b"error", status=500)

    def do_broken_once(self):
        self.respond(CONTENT, status=500 if len(self.server.requested) == 1 else 200)

    def do_stalling(self):
        self.respond(CONTENT[:20_000], length=len(CONTENT))
        self.server.half_sent.set()
        self.server.end.wait(20)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requested, server.end, server.half_sent = [], threading.Event(), threading.Event()
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.end.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, no data folder, no proxy, no waiting."""
    monkeypatch.setenv("ADMISS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ADMISS_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(storage.time, "sleep", lambda seconds: None)
    return tmp_path / "cache"


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def requested_file(server, what):
    return DataFile(PATH, f"{server.address}/{what}", SHA256)


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def put(folder, path, content):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(content)


@pytest.mark.parametrize(
    ("what", "before", "requested"),
    [
        ("good", None, ["/good"]),
        ("good", CONTENT[:-1] + b"x", ["/good"]),  # damaged
        ("broken-once", None, ["/broken-once"] * 2),
    ],
)
def test_a_download_is_cached_and_not_repeated(server, cache, capfd, what, before, requested):
    if before is not None:
        put(cache, PATH, before)
    for _ in range(2):
        assert read_file(requested_file(server, what)) == CONTENT
        assert files_of(cache) == {PATH: CONTENT}
    assert server.requested == requested
    assert capfd.readouterr() == ("", "")


def test_permissions_in_the_cache_follow_the_umask(server, cache):
    before = os.umask(0o022)
    try:
        read_file(requested_file(server, "good"))
    finally:
        os.umask(before)
    assert (cache / PATH).stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("what", "requests", "words"),
    [
        ("wrong", 1, f"SHA-256 {hashlib.sha256(b'<html>Sign in to the wireless network</html>').hexdigest()} and not"),
        ("absent", 1, "the download failed (HTTP 404)"),
        ("broken", 2, "the download failed (HTTP 500)"),
        ("cut", 2, "the download failed (ChunkedEncodingError)"),
        ("stalling", 2, "the download failed (ConnectionError)"),
    ],
)
@pytest.mark.parametrize("damaged", [False, True])
def test_a_download_that_fails_leaves_the_cache_as_it_was(server, cache, monkeypatch, what, requests, words, damaged):
    monkeypatch.setattr(storage, "TIMEOUT", (5.0, 0.1))
    put(cache, "uci/other.data", b"good and of another name")
    if damaged:
        put(cache, PATH, CONTENT[:-1])
    before = files_of(cache)
    with pytest.raises(DataUnavailableError) as caught:
        read_file(requested_file(server, what))
    sentence = str(caught.value)
    assert words in sentence
    assert sentence.startswith(f"{PATH} is needed from {server.address}/{what}, ")
    assert sentence.endswith(f"put that file as {PATH} into a folder named by ADMISS_DATA, or as {cache / PATH}.")
    assert ("its copy in the cache is damaged" in sentence) == damaged
    assert "\n" not in sentence
    assert files_of(cache) == before
    assert requests_of(server, requests) == requests


def test_no_network(cache):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/file"
    with pytest.raises(DataUnavailableError, match=r"the download failed \(ConnectionError\)"):
        read_file(DataFile(PATH, address, SHA256))
    assert not cache.exists()


@pytest.mark.parametrize("place", ["data", "cache"])
def test_the_folder_comes_before_the_cache_and_the_cache_before_the_network(tmp_path, monkeypatch, no_network, place):
    (tmp_path / "data").mkdir()
    put(tmp_path / place, PATH, CONTENT)
    monkeypatch.setenv("ADMISS_DATA", str(tmp_path / "data"))
    assert read_file(DataFile(PATH, "http://127.0.0.1/good", SHA256)) == CONTENT
    assert (tmp_path / "cache").exists() == (place == "cache")


def test_the_network_serves_what_folder_and_cache_lack(tmp_path, cache, monkeypatch, server):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("ADMISS_DATA", str(tmp_path / "data"))
    with pytest.raises(DataUnavailableError) as caught:
        read_file(requested_file(server, "absent"))
    paths = f"put that file as {tmp_path / 'data' / PATH} (ADMISS_DATA), or as {cache / PATH}."
    assert str(caught.value).endswith(paths)
    assert read_file(requested_file(server, "good")) == CONTENT
    assert files_of(tmp_path / "data") == {}


def test_another_file_in_the_folder_or_no_folder_is_refused(tmp_path, cache, monkeypatch, no_network):
    put(tmp_path / "data", PATH, CONTENT + b"\n")
    put(cache, PATH, CONTENT)
    monkeypatch.setenv("ADMISS_DATA", str(tmp_path / "data"))
    file, found = DataFile(PATH, "http://127.0.0.1/good", SHA256), hashlib.sha256(CONTENT + b"\n").hexdigest()
    with pytest.raises(DataUnavailableError, match=f"its SHA-256 is {found} and not {SHA256}") as caught:
        read_file(file)
    assert str(tmp_path / "data" / PATH) in str(caught.value)
    monkeypatch.setenv("ADMISS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataUnavailableError, match="nowhere is not a folder: correct or unset it"):
        read_file(file)


def test_without_pooch(cache, monkeypatch, no_network):
    monkeypatch.setitem(sys.modules, "pooch", None)
    file = DataFile(PATH, "http://127.0.0.1/good", SHA256)
    with pytest.raises(DataUnavailableError) as caught:
        read_file(file)
    assert "downloading needs pooch: run 'pip install \"admiss[data]\"', or put that file" in str(caught.value)
    put(cache, PATH, CONTENT)
    assert read_file(file) == CONTENT


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch, server):
    # A file where the folder should be: permissions would not stop root.
    (tmp_path / "file").write_bytes(b"mine")
    monkeypatch.setenv("ADMISS_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="set ADMISS_CACHE to a writable folder"):
        assert read_file(requested_file(server, "good")) == CONTENT
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_a_file_that_another_process_has_stored_and_holds_open_is_used(server, cache, monkeypatch):
    def replace(source, path):
        Path(path).write_bytes(CONTENT)
        raise PermissionError(13, "another process has it open")

    monkeypatch.setattr(os, "replace", replace)
    assert read_file(requested_file(server, "good")) == CONTENT
    assert files_of(cache) == {PATH: CONTENT}


# A separate process, which imports only what it needs of admiss, as the whole takes seconds.
CHILD = """
import hashlib, os, signal, sys, types
for name in ("admiss", "admiss.datasets"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [os.path.join(os.environ["ROOT"], *name.split("."))]
from admiss.datasets.paper import storage
prepare, path, address, sha256 = sys.argv[1:]
exec(prepare)
try:
    content = storage.read_file(storage.DataFile(path, address, sha256))
except storage.DataUnavailableError as error:
    print(error)
else:
    print(hashlib.sha256(content).hexdigest())
"""


def start_child(server, what, prepare=""):
    command = [sys.executable, "-c", CHILD, prepare, PATH, f"{server.address}/{what}", SHA256]
    environment = {**os.environ, "ROOT": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.skipif(sys.platform == "win32", reason="limits and signals of POSIX")
def test_a_full_disk_and_processes_that_are_killed(server, cache):
    put(cache, PATH, b"damaged")
    before = files_of(cache)
    full = start_child(
        server,
        "good",
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)",
    )
    said, warned = full.communicate(timeout=60)
    assert said.strip() == SHA256
    assert "was downloaded but cannot be stored as" in warned
    assert "(File too large)" in warned
    assert files_of(cache) == before

    in_transfer = start_child(server, "stalling")
    # This one is killed after its file is written and before it is renamed.
    before_move = start_child(server, "good", "os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)")
    assert server.half_sent.wait(60)
    in_transfer.kill()
    assert [child.wait(60) for child in (in_transfer, before_move)] == [-9, -9]
    for stream in (in_transfer.stdout, in_transfer.stderr, before_move.stdout, before_move.stderr):
        stream.close()
    left = files_of(cache)
    assert left.pop(PATH) == b"damaged"
    assert [Path(name).suffix for name in left] == [".part"]
    assert read_file(requested_file(server, "good")) == CONTENT
    assert (cache / PATH).read_bytes() == CONTENT


@pytest.mark.parametrize("home", ["", "/somewhere"])
def test_the_cache_folder_is_that_of_pooch(monkeypatch, home):
    monkeypatch.delenv("ADMISS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    if sys.platform == "win32":
        assert cache_folder().parts[-2:] == ("admiss", "Cache")
    else:
        assert cache_folder() == pooch.os_cache("admiss")


def test_the_cache_folder_can_be_named(monkeypatch):
    monkeypatch.setenv("ADMISS_CACHE", "~/mine")
    assert cache_folder() == Path.home() / "mine"
    monkeypatch.setenv("ADMISS_CACHE", "mine")
    assert cache_folder() == Path.cwd() / "mine"
