"""Pages are fetched from where the user allows, within limits, and nothing that a server says leads elsewhere."""

from __future__ import annotations

import gzip
import threading
import tracemalloc
import zlib

import pytest
from soaking import mostly_soaked

from nlp_retrieval.errors import FetchError, FetchRefusedError
from nlp_retrieval.systems.evidence.web_research import connections
from nlp_retrieval.systems.evidence.web_research.fetching import HttpFetcher

from .web_server import Page, WebServer, html, redirect, web_server


def fetcher(web: WebServer, **settings: object) -> HttpFetcher:
    return HttpFetcher(**({"private_hosts": [f"127.0.0.1:{web.port}"], "seconds": 10.0} | settings))


class Names:
    """A resolver that says what a test says: each time the next of a name's addresses, the last one again and again."""

    def __init__(self) -> None:
        self.answers: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        answers = self.answers[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    made = Names()
    monkeypatch.setattr(connections, "resolve_host", made)
    return made


def test_a_request_says_who_asks_and_nothing_else_of_the_user(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    web.pages["/a"] = Page(b"x", headers={"Set-Cookie": "id=1; Path=/"})
    one = fetcher(web)
    one.fetch(f"{web.url}/a")
    one.fetch(f"{web.url}/a")
    assert set(web.headers[-1]) == {"host", "user-agent", "accept", "accept-encoding", "connection"}
    assert web.headers[-1]["user-agent"] == "nlp_retrieval/0.1 (research fetcher)"
    assert web.headers[-1]["host"] == f"127.0.0.1:{web.port}"


def test_nothing_is_fetched_from_this_machine_or_network() -> None:
    for url in [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
    ]:
        with pytest.raises(FetchError) as caught:
            HttpFetcher(seconds=5.0).fetch(url)
        # some spellings are no addresses for the resolver of some machines; all others are refused for what they mean
        assert isinstance(caught.value, FetchRefusedError) or "is not known" in str(caught.value)


def test_other_ports_are_refused() -> None:
    for port in (22, 0):
        with pytest.raises(FetchRefusedError, match=f"port {port} "):
            HttpFetcher().fetch(f"http://a.example:{port}/")


def test_a_host_that_is_named_with_a_port_is_allowed_at_that_port_alone(web: WebServer) -> None:
    web.pages |= {"/a": html("Foxes sleep."), "/b": redirect("http://127.0.0.1:6379/")}
    for host in (f"127.0.0.1:{web.port}", f" 127.0.0.1:{web.port} "):
        one = HttpFetcher(private_hosts=[host], seconds=10.0)
        assert one.fetch(f"{web.url}/a").content
        with pytest.raises(FetchRefusedError, match="port 6379"):
            one.fetch(f"{web.url}/b")
    for host in ("127.0.0.1", "127.0.0.1:1", "localhost", f"localhost:{web.port}", f"[::1]:{web.port}"):
        with pytest.raises(FetchRefusedError):
            HttpFetcher(private_hosts=[host], seconds=10.0).fetch(f"{web.url}/a")


def test_a_name_that_means_a_private_address_is_refused_even_among_public_ones(names: Names) -> None:
    for addresses in (["127.0.0.1"], ["::ffff:127.0.0.1"], ["fe80::1%lo"], ["nonsense"], ["93.184.216.34", "127.0.0.1"]):
        names.answers["a.example"] = [addresses]
        with pytest.raises(FetchRefusedError, match=r"a\.example"):
            HttpFetcher(private_hosts=["127.0.0.1", "wiki.example"]).fetch("http://a.example/")


def test_a_name_that_changes_its_address_is_connected_to_at_the_one_that_was_checked(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: public when it is checked, private when it is used."""
    import httpcore2

    connected: list[str] = []

    def connect(self: object, host: str, port: int, *rest: object) -> httpcore2.NetworkStream:
        connected.append(host)
        raise httpcore2.ConnectError("the test goes no further")

    monkeypatch.setattr(httpcore2.SyncBackend, "connect_tcp", connect)
    names.answers["a.example"] = [["93.184.216.34"], ["127.0.0.1"]]
    one = HttpFetcher()
    with pytest.raises(FetchError, match="goes no further"):
        one.fetch("http://a.example/")
    assert connected == ["93.184.216.34"], "the name itself was connected to, which resolves it again"
    assert names.asked == ["a.example"]
    with pytest.raises(FetchRefusedError):
        one.fetch("http://a.example/")
    assert connected == ["93.184.216.34"]


def test_tls_is_for_the_name_and_the_connection_for_the_checked_address(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    import ssl

    import httpcore2

    told: list[object] = []

    class Stream(httpcore2.NetworkStream):
        def start_tls(
            self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
        ) -> httpcore2.NetworkStream:
            told.extend([server_hostname, ssl_context.check_hostname, ssl_context.verify_mode])
            raise httpcore2.ConnectError("the test goes no further")

        def close(self) -> None:
            pass

    def connect(self: object, host: str, port: int, *rest: object) -> httpcore2.NetworkStream:
        told.extend([host, port])
        return Stream()

    monkeypatch.setattr(httpcore2.SyncBackend, "connect_tcp", connect)
    names.answers["a.example"] = [["93.184.216.34"]]
    with pytest.raises(FetchError, match="goes no further"):
        HttpFetcher().fetch("https://a.example/")
    assert told == ["93.184.216.34", 443, "a.example", True, ssl.CERT_REQUIRED]


def test_redirects_are_followed_to_the_page_that_is_cited(web: WebServer) -> None:
    web.pages |= {"/a": redirect("b/c?d"), "/b/c": redirect("/e", 308), "/e": html("Foxes sleep.")}
    page = fetcher(web).fetch(f"{web.url}/a")
    assert page.url == f"{web.url}/e"
    assert web.asked == ["/a", "/b/c?d", "/e"]


@pytest.mark.parametrize(
    "location",
    mostly_soaked([
        "http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[::1]/", "http://localhost/", "//192.168.0.1/x",
        "file:///etc/passwd", "ftp://a.example/", "javascript:alert(1)", "http://user:word@a.example/", "http://10.0.0.1:22/",
        "data:text/html,x",
    ], 1),
)  # fmt: skip
def test_a_redirect_leads_to_nothing_that_may_not_be_fetched(web: WebServer, location: str) -> None:
    web.pages["/a"] = redirect(location)
    with pytest.raises(FetchRefusedError):
        fetcher(web).fetch(f"{web.url}/a")
    assert web.asked == ["/a"]


def test_a_redirect_from_elsewhere_does_not_lead_to_a_host_that_the_user_allowed(web: WebServer, names: Names) -> None:
    web.pages |= {"/a": redirect(f"http://wiki.example:{web.port}/delete"), "/delete": html("deleted")}
    names.answers |= {"127.0.0.1": [["127.0.0.1"]], "wiki.example": [["127.0.0.1"]]}
    one = HttpFetcher(private_hosts=[f"127.0.0.1:{web.port}", f"wiki.example:{web.port}"])
    with pytest.raises(FetchRefusedError, match="private host"):
        one.fetch(f"{web.url}/a")
    assert web.asked == ["/a"]


def test_what_is_no_page_is_an_error_that_says_why(web: WebServer) -> None:
    for page, why in (
        (Page(status=302), "redirects without"),
        (redirect("http://[bad/"), "not an address"),
        (Page(status=404), "status 404"),
        (Page(b"nonsense\r\n\r\n", head_too=True), "no complete answer"),
        (Page(b"", headers={"Content-Length": "100"}), "no complete answer"),
        (Page(b"xxxx", headers={"Content-Encoding": "br"}), "not requested"),
        (Page(b"no gzip at all", headers={"Content-Encoding": "gzip"}), "cannot be decompressed"),
        (Page(gzip.compress(b"x" * 1000)[:-12], headers={"Content-Encoding": "gzip"}), "cut off"),
        (Page(gzip.compress(b"x"), headers={"Content-Encoding": "gzip"}, again=b"x" * 65_536), "cannot be decompressed"),
        (Page(gzip.compress(b""), headers={"Content-Encoding": "gzip"}, again=gzip.compress(b"") * 3000), "is larger than"),
    ):
        web.pages["/a"] = page
        with pytest.raises(FetchError, match=why):
            fetcher(web).fetch(f"{web.url}/a")
    with web_server() as ended:
        pass
    with pytest.raises(FetchError, match="no complete answer"):
        fetcher(ended).fetch(f"{ended.url}/")


def test_a_body_without_an_end_is_cut_off_and_the_client_hangs_up(web: WebServer) -> None:
    web.pages["/a"] = Page(b"", again=b"x" * 65_536)
    with pytest.raises(FetchError, match="larger than 1,000,000 bytes"):
        fetcher(web, max_bytes=1_000_000).fetch(f"{web.url}/a")
    assert web.sent < 100_000_000


@pytest.mark.parametrize(
    "page",
    mostly_soaked(
        [
            Page(b"", again=b"x", pause=0.02),
            Page(b"HTTP/1.1 200 OK\r\nX-Padding: x", again=b"x", pause=0.02, head_too=True),
            Page(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x", again=b"x", pause=0.02, head_too=True),
            Page(b"", again=b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.02, head_too=True),
            Page(b"", again=b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, head_too=True),
            Page(b"HTTP/1.1 200 OK\r\nX-Padding: x", again=b"x" * 65_536, head_too=True),
            Page(b"HTTP/1.1 200 OK\r\n", again=b"X: y\r\n" * 1000, head_too=True),
            Page(b"", headers={"Content-Length": "100"}),
        ],
        1,
    ),
)
def test_a_page_that_comes_too_slowly_or_not_whole_is_given_up(web: WebServer, page: Page) -> None:
    web.pages["/a"] = page
    with pytest.raises(FetchError, match=r"within 0\.4 s|no complete answer"):
        fetcher(web, seconds=0.4).fetch(f"{web.url}/a")


def test_a_resolver_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ending = threading.Event()
    monkeypatch.setattr(connections, "resolve_host", lambda host, port: ending.wait(300) and [])
    with pytest.raises(FetchError, match=r"within 0\.2 s"):
        HttpFetcher(seconds=0.2).fetch("http://a.example/")
    ending.set()


def test_a_compressed_page_is_unpacked(web: WebServer) -> None:
    body = b"<p>Foxes sleep nine hours a day.</p>" * 10_000
    web.pages["/a"] = Page(gzip.compress(body[:1000]) + gzip.compress(body[1000:]), headers={"Content-Encoding": "gzip"})
    assert fetcher(web).fetch(f"{web.url}/a").content == body


def test_a_bomb_is_not_unpacked(web: WebServer) -> None:
    packing = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    bomb = b"".join(packing.compress(bytes(2**20)) for _ in range(40)) + packing.flush()
    web.pages["/a"] = Page(bomb, headers={"Content-Encoding": "gzip"})
    assert len(bomb) < 60_000
    tracemalloc.start()
    with pytest.raises(FetchError, match="larger than 1,000,000 bytes"):
        fetcher(web, max_bytes=1_000_000).fetch(f"{web.url}/a")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_robots_txt_is_asked_once_and_obeyed(web: WebServer) -> None:
    web.pages |= {
        "/robots.txt": Page(b"User-agent: *\nDisallow: /secret\n\nUser-agent: other\nDisallow: /\n", media_type="text/plain"),
        "/open": html("Foxes sleep."),
        "/secret/a": html("no"),
        "/moved": redirect("/secret/a"),
    }
    one = fetcher(web)
    assert one.fetch(f"{web.url}/open").content
    for path in ("/secret/a", "/moved"):
        with pytest.raises(FetchRefusedError, match=r"robots\.txt"):
            one.fetch(f"{web.url}{path}")
    assert web.asked == ["/robots.txt", "/open", "/moved"]


def test_a_site_without_rules_allows_all_and_one_that_cannot_say_allows_nothing(web: WebServer) -> None:
    web.pages["/a"] = html("Foxes sleep.")
    for robots in (Page(status=403), redirect("/elsewhere"), Page(b"\xff\xfe\x00<html>")):
        web.pages["/robots.txt"] = robots
        assert fetcher(web).fetch(f"{web.url}/a").content
    web.asked.clear()
    for robots in (
        Page(status=500),
        Page(status=429),
        Page(b"", again=b"x" * 65_536),
        redirect("http://10.0.0.1/robots.txt"),
        redirect("/robots.txt"),
        Page("\ufeffUser-agent: *\nDisallow: /\n".encode()),
    ):
        web.pages["/robots.txt"] = robots
        with pytest.raises(FetchError):
            fetcher(web).fetch(f"{web.url}/a")
    assert "/a" not in web.asked
