"""Keys and URLs of endpoints: a key is named by its environment variable, and neither stored nor shown."""

from __future__ import annotations

from urllib.parse import urlsplit

from nlp_retrieval.core.secrets import HIDDEN, read_variable, without_secrets
from nlp_retrieval.errors import ConfigurationError


class EndpointKey:
    """The key in an environment variable, read for each request.

    Args:
        owner: names the component in messages.
        model: the same for its model.
        variable: name of the variable; None where no key is sent.

    Raises:
        ConfigurationError: the variable is not set, or its name looks like a key itself.
    """

    def __init__(self, owner: str, model: str, variable: str | None) -> None:
        if variable is not None and (
            not variable.isascii() or not variable.isidentifier() or HIDDEN in without_secrets(variable)
        ):
            raise ConfigurationError(
                f"{owner}: api_key_env must name an environment variable, such as OPENAI_API_KEY; what was given is not such a "
                "name (it is not shown, because it may be a key)"
            )
        self._owner, self._model, self._variable = owner, model, variable
        self.read()

    @property
    def cure(self) -> str:
        """What to do about a key that is refused."""
        return f"check the key in {self._variable or 'api_key_env'}"

    def read(self) -> str | None:
        """Return the key; None where none is sent.

        Raises:
            ConfigurationError: the variable is not set, or holds something else.
        """
        if self._variable is None:
            return None
        key = read_variable(self._variable).strip()
        if not key:
            raise ConfigurationError(
                f"{self._owner}: {self._model} needs a key, and the environment variable {self._variable} is not set; set it, "
                "or name another with api_key_env"
            )
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError(f"{self._owner}: what {self._variable} holds is no key (it is not shown); set it again")
        return key

    def hidden(self, message: str) -> str:
        """Return a message without the key, and without anything that looks like one."""
        key = read_variable(self._variable or "").strip()
        return str(without_secrets(message.replace(key, HIDDEN) if key else message))


def check_url(owner: str, url: str) -> None:
    """Check that ``base_url`` is the URL of a server, without a secret.

    Args:
        owner: names the component in messages.
        url: the URL.

    Raises:
        ConfigurationError: it is not.
    """
    if without_secrets(url) != url:
        raise ConfigurationError(
            f"{owner}: base_url={without_secrets(url)!r} holds a password or a key; put it into an environment "
            "variable and name the variable with api_key_env"
        )
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
        parts = urlsplit("")
    if not fits or parts.query or parts.fragment or parts.username or not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigurationError(
            f"{owner}: base_url={url!r} is not the URL of a server; write it as http://localhost:8000/v1, without a query"
        )
