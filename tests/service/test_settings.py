"""Where the service may listen, and what a token is."""

from __future__ import annotations

import dataclasses
import pickle
import re
import socket

import pytest

from nlp_retrieval.errors import (
    ConfigurationError,
    DependencyError,
    IndexDamagedError,
    IndexLockedError,
    IndexMismatchError,
    IndexMissingError,
    IndexWriteError,
    RetrievalError,
    ServerError,
)
from nlp_retrieval.service.endpoints import RefusedError, refusal_of
from nlp_retrieval.service.serving import listen
from nlp_retrieval.service.settings import ServiceLimits, ServiceSettings, is_loopback, read_token

from .running import make_index

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_nobody_listens_to_others_without_a_token(host):
    with pytest.raises(ConfigurationError, match="no token is set"):
        ServiceSettings(host)
    assert ServiceSettings(host, token=TOKEN).token == TOKEN


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_needs_none(host):
    assert is_loopback(host)
    assert ServiceSettings(host).on_loopback


@pytest.mark.parametrize("host", ["", "\0", "no such name", "999.1.1.1", "x" * 300, "\udcff"])
def test_an_address_that_is_none_is_refused(host):
    with pytest.raises(ConfigurationError):
        ServiceSettings(host)


@pytest.mark.parametrize(
    "wrong",
    [{"port": -1}, {"port": 65_536}, {"workers": 0}, {"workers": 257}],
)
def test_settings_that_cannot_be_used_are_refused(wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        ServiceSettings(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"body": 10}, {"threads": 0}, {"waiting": -1}, {"seconds": 0}, {"seconds": float("nan")}, {"writing_seconds": 1e9}],
)
def test_limits_that_cannot_be_used_are_refused(wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        ServiceLimits(**wrong)


def test_a_token_is_not_shown():
    settings = ServiceSettings(token=TOKEN)
    assert TOKEN not in repr(settings)
    assert TOKEN not in str(settings)
    assert dataclasses.replace(settings, port=1).token == TOKEN
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_a_token_is_read_from_a_file_before_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "from-the-environment")
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert read_token("SOME_TOKEN", None) == "from-the-environment"
    assert read_token("SOME_TOKEN", tmp_path / "token") == TOKEN
    assert read_token("NO_SUCH_TOKEN", None) is None


@pytest.mark.parametrize(
    "content", [b"", b"short", b"two words in one line", b"caf\xc3\xa9-caf\xc3\xa9-caf\xc3\xa9", b"x" * 5000]
)
def test_what_is_no_secret_is_refused(tmp_path, content):
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(ConfigurationError, match="token"):
        read_token("NO_SUCH_TOKEN", tmp_path / "token")


def test_a_token_that_is_named_and_not_there_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match="NO_SUCH_TOKEN holds no token"):
        read_token("NO_SUCH_TOKEN", None, required=True)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_token("NO_SUCH_TOKEN", tmp_path / "nowhere")


def test_a_port_that_is_taken_is_said_to_be():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigurationError, match="choose another --port"):
        listen(ServiceSettings(port=taken.getsockname()[1]))


def test_small_answers_are_sent_at_once():
    with listen(ServiceSettings(port=0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # asyncio asks for TCP_NODELAY where it sees this


def test_an_error_that_nobody_wrote_for_those_who_ask_tells_them_nothing(monkeypatch):
    monkeypatch.setenv("SERVICE_API_KEY", "a-very-secret-value")
    assert b"secret" not in refusal_of(KeyError("a secret of the machine")).body()
    assert b"a-very-secret-value" not in RefusedError(500, "failed", "key a-very-secret-value was refused").body()
    assert refusal_of(MemoryError()).status == 503


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (IndexMissingError("/srv/secret place/index: there is no index here"), 409),
        (IndexMissingError("there is no index at secret/index; build one"), 409),
        (IndexMismatchError("the index 'secret/index/manifest.json' was built with bm25"), 409),
        (IndexDamagedError("/srv/secret/index/items.bin is cut off"), 500),
        (IndexLockedError("another process is writing to /srv/secret/index"), 503),
        (IndexWriteError("cannot write to /srv/secret/index"), 503),
        (ServerError("/srv/secret/socket does not answer"), 500),
        (DependencyError("cannot open /srv/secret/lib.so"), 501),
        (OSError(2, "No such file", "/srv/secret/index"), 500),
    ],
)
def test_no_path_of_the_server_reaches_a_client_and_the_log_has_it(error, status, caplog):
    refusal = refusal_of(error)
    assert refusal.status == status
    assert b"secret" not in refusal.body()
    if isinstance(error, RetrievalError):
        assert "secret" in caplog.text


@pytest.fixture
def given(monkeypatch, tmp_path, capsys):
    """Call ``serve`` with words, variables and a file; return how it would open and serve, or the error."""
    from nlp_retrieval.cli.app import app
    from nlp_retrieval.service import serving

    make_index(tmp_path / "index", 3)
    called = []

    def serve(opening, settings, _):
        opening().close()
        called.append((opening, settings))

    def run(*words, file="", **variables):
        with monkeypatch.context() as patched:
            patched.setattr(serving, "serve", serve)
            for name, value in variables.items():
                patched.setenv(f"NLP_RETRIEVAL_{name}", value)
            (tmp_path / "settings.yaml").write_text(file)
            app(["serve", *words, *(["--config", str(tmp_path / "settings.yaml")] if file else [])], standalone_mode=False)
        return called.pop() if called else capsys.readouterr().err

    return run, str(tmp_path / "index")


def test_a_flag_overrides_a_variable_and_a_variable_the_file_and_the_file_the_default(given):
    run, index = given
    assert run(index)[1].port == 8000
    assert run(index, file="port: 1001")[1].port == 1001
    assert run(index, file="port: 1001", PORT="1002")[1].port == 1002
    assert run(index, "--port", "1003", file="port: 1001", PORT="1002")[1].port == 1003


def test_every_kind_of_setting_may_stand_in_a_file_or_in_the_environment(given):
    run, index = given
    file = f"""
        path: {index}
        retriever: [bm25]
        set: {{fusion: rrf, reranker: {{name: overlap, blend: rank}}}}
        allowed_host: search.example.org
        warm: true
        log_format: json
        seconds: 2.5
    """
    opening, settings = run(file=file, LOG_LEVEL="error", ALLOWED_HOST="a.example b.example", MCP_HTTP="true")
    assert str(opening.path) == index
    assert (opening.retriever, opening.settings) == (
        ("bm25",),
        {"fusion": "rrf", "reranker": {"name": "overlap", "blend": "rank"}},
    )
    assert settings.allowed_hosts == ("a.example", "b.example")
    assert (settings.warm, settings.mcp, settings.log_format, settings.log_level) == (True, True, "json", "error")
    assert settings.limits.seconds == 2.5
    variables = {"SET": '{"fusion": "rrf", "reranker": {"name": "overlap"}}', "ALLOWED_HOST": "[10.0.0.1, '::1', x.example]"}
    opening, settings = run(index, **variables)
    assert opening.settings == {"fusion": "rrf", "reranker": {"name": "overlap"}}
    assert settings.allowed_hosts == ("10.0.0.1", "::1", "x.example")


def test_a_token_is_read_from_the_file_that_the_environment_names(given, tmp_path):
    run, index = given
    (tmp_path / "token").write_text(TOKEN)
    assert run(index, TOKEN_FILE=str(tmp_path / "token"), HOST="0.0.0.0")[1].token == TOKEN
    assert run(index, "--token-env", "NLP_RETRIEVAL_TOKEN", TOKEN=TOKEN, TOKEN_FILE="/nowhere")[1].token == TOKEN


@pytest.mark.parametrize(
    ("file", "variables", "said"),
    [
        ("prot: 1", {}, r"settings\.yaml: unknown setting 'prot'; did you mean 'port'"),
        ("port: many", {}, r"settings\.yaml: port: .*integer"),
        ("workers: true", {}, r"settings\.yaml: workers: true"),
        ("host: [a, b]", {}, "host: expected one value"),
        ("allowed_host: [[a]]", {}, "allowed_host: expected a list of texts"),
        ("- 1", {}, "not a mapping"),
        ("# nothing", {}, "holds nothing, not a mapping"),
        ("", {"ALLOWED_HOST": "a.example, b.example"}, r"allowed_host='a\.example,' is not a host name.*between spaces"),
        ("allowed_host: 'https://a.example/'", {}, "is not a host name; write it without scheme"),
        ("", {"ALLOWED_HOST": "a.example:443"}, "is not a host name"),
        ("", {"ALLOWED_HOST": "*.example"}, "is not a host name"),
        ("", {"SET": "{fusion: rrf"}, "NLP_RETRIEVAL_SET"),
        (f"token: {TOKEN}", {}, "token_file"),
        ("config: other.yaml", {}, "unknown setting 'config'"),
        ("port: 1\nport: 2", {}, "appears twice"),
        ("set: {fusoin: rrf}", {}, "fusoin"),
        ("", {"PROT": "1"}, "NLP_RETRIEVAL_PROT sets nothing; did you mean 'NLP_RETRIEVAL_PORT'"),
        ("", {"port": "1"}, "NLP_RETRIEVAL_port sets nothing"),
        ("", {"PORT": "many"}, "NLP_RETRIEVAL_PORT: .*integer"),
        ("", {"WARM": "perhaps"}, "NLP_RETRIEVAL_WARM: .*boolean"),
        ("", {"LOG_LEVEL": "inof"}, "did you mean 'info'"),
        ("", {"DRAIN": "-1"}, "drain=-1"),
    ],
)
def test_what_sets_nothing_or_cannot_be_used_is_refused_by_its_place(given, file, variables, said):
    run, index = given
    error = run(index, file=file, **variables)
    assert re.search(said, error)
    assert TOKEN not in error


def test_the_address_of_an_image_does_not_keep_it_from_answering_on_standard_input(given):
    run, index = given
    assert "can be served over MCP" in run(index, "--mcp", "--check", HOST="0.0.0.0", PORT="9000", TOKEN_FILE="/run/token")
    assert "leave out --mcp-http" in run(index, "--mcp", "--check", "--port", "9000")


def test_the_variables_of_a_service_that_kubernetes_calls_by_this_name_are_none_of_ours(given):
    run, index = given
    variables = {"PORT": "tcp://10.0.0.1:80", "SERVICE_HOST": "10.0.0.1", "SERVICE_PORT": "80", "SERVICE_PORT_HTTP": "80"}
    assert run(index, **variables, PORT_80_TCP="tcp://10.0.0.1:80", PORT_80_TCP_ADDR="10.0.0.1")[1].port == 8000
