"""Whether a server of language models answers, asked at no cost."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from nlp_retrieval.errors import ModelError
from nlp_retrieval.lm.endpoint import EndpointKey, ModelEndpoint, check_url

_SECONDS = 10.0
_LONGEST_WAIT = 60.0
_sleep: Callable[[float], None] = time.sleep


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a key is sent to its own server only."""

    def redirect_request(self, *request: Any) -> None:
        del request


def check_server(url: str, key: EndpointKey, endpoint: ModelEndpoint) -> None:
    """Ask a server for its list of models, with the retries of its endpoint; one that offers no list passes.

    Args:
        url: that ``/models`` is appended to.
        key: to send.
        endpoint: limits of requests.

    Raises:
        ModelError: nothing answers there, or the key is refused.
    """
    check_url("LanguageModel", url)
    request = urllib.request.Request(f"{url.rstrip('/')}/models")  # noqa: S310 -- checked above: http or https
    value, reason = key.read(), ""
    if value is not None:
        request.add_header("Authorization", f"Bearer {value}")
    opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))
    for attempt in range(endpoint.retries + 1):
        if attempt:
            _sleep(min(endpoint.backoff * 2 ** (attempt - 1), _LONGEST_WAIT))
        try:
            opener.open(request, timeout=min(_SECONDS, endpoint.timeout)).close()
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (401, 403):
                raise ModelError(f"{url}: the key is refused (status {error.code}); {key.cure}") from None
        except (OSError, ValueError) as error:
            reason = key.hidden(str(getattr(error, "reason", error)))
            continue
        return
    tries = f" ({endpoint.retries + 1} attempts)" if endpoint.retries else ""
    raise ModelError(f"{url}: no server of language models answers there: {reason}{tries}")
