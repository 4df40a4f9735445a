"""Where the service may listen, what a token is, and what errors tell a client."""

from __future__ import annotations

import pytest

from nlp_retrieval.cli.app import app
from nlp_retrieval.errors import ConfigurationError, IndexLockedError, IndexMissingError, RetrievalError
from nlp_retrieval.service import serving
from nlp_retrieval.service.endpoints import refusal_of
from nlp_retrieval.service.settings import ServiceSettings, read_token

from .running import make_index

TOKEN = "0123456789abcdef"


def test_nobody_listens_to_others_without_a_token(subtests):
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with subtests.test(host):
            with pytest.raises(ConfigurationError, match="no token is set"):
                ServiceSettings(host)
            assert len(ServiceSettings(host, tokens=read_token(TOKEN, None)).tokens) == 1
    for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        assert ServiceSettings(host).on_loopback
    for host in ("", "\0", "no such name", "999.1.1.1", "\udcff"):
        with subtests.test(ascii(host)), pytest.raises(ConfigurationError, match="host"):
            ServiceSettings(host)
    with pytest.raises(ConfigurationError, match="threads=0: take at least 1"):
        ServiceSettings(threads=0)


ERRORS = [
    (IndexMissingError("/srv/secret place/index: there is no index here"), 409),
    (MemoryError("a secret"), 503),
    (KeyError("a secret of the machine"), 500),
    (IndexLockedError("another process is writing to /srv/secret/index"), 503),
]


def test_no_path_of_the_server_reaches_a_client_and_the_log_has_it(caplog, subtests):
    for error, status in ERRORS:
        with subtests.test(str(error)):
            caplog.clear()
            refusal = refusal_of(error)
            assert refusal.status == status
            assert b"secret" not in refusal.body()
            if isinstance(error, RetrievalError):
                assert "secret" in caplog.text


@pytest.fixture
def given(monkeypatch, tmp_path, capsys):
    """Call ``serve`` with words and variables; return how it would open and serve, or the error."""
    make_index(tmp_path / "index", 3)
    called = []

    def serve(opening, settings, _, *, check):
        opening().close()
        called.append((opening, settings))

    def run(*words, **variables):
        with monkeypatch.context() as patched:
            patched.setattr(serving, "serve", serve)
            for name, value in variables.items():
                patched.setenv(f"NLP_RETRIEVAL_{name}", value)
            patched.setattr("sys.argv", ["nlp-retrieval", "serve", *words])
            with pytest.raises(SystemExit):
                app()
        return called.pop() if called else capsys.readouterr().err

    return run, str(tmp_path / "index")


def test_every_option_may_stand_in_the_environment_and_a_flag_overrides_it(given, tmp_path):
    run, index = given
    assert run(index)[1].port == 8000
    assert run(index, PORT="1002")[1].port == 1002
    assert run(index, "--port", "1003", PORT="1002")[1].port == 1003
    assert all("less than or equal to" in run(index, option, "99999999") for option in ("--threads", "--workers"))
    (tmp_path / "token").write_text(TOKEN)
    variables = {"LOG_FORMAT": "json", "ALLOWED_HOST": "a.example b.example", "MCP_HTTP": "true", "SECONDS": "2.5"}
    variables |= {"SET": 'fusion=rrf reranker={"name":"overlap"}', "TOKEN_FILE": str(tmp_path / "token"), "HOST": "0.0.0.0"}
    opening, settings = run(PATH=index, **variables)
    given = opening.keywords
    assert (str(given["path"]), given["settings"]) == (index, {"fusion": "rrf", "reranker": {"name": "overlap"}})
    assert (settings.allowed_hosts, settings.tokens) == (("a.example", "b.example"), read_token(TOKEN, None))
    assert (settings.mcp, settings.log_format, settings.seconds) == (True, "json", 2.5)
    assert "can be served over MCP" in run(index, "--mcp", "--check", HOST="0.0.0.0", TOKEN_FILE="/nowhere")
