"""Requests over the network: certificates checked, proxies of the environment, failures in words, whether to try again."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

TIMEOUT = 30.0  # seconds without a byte
_TEMPORARY = {408, 425, 429, 500, 502, 503, 504}  # answers of a server that may give another one soon
_MAX_WAIT = 60.0  # seconds, whatever a server asks for


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, never from https to http; `headers` keeps those of each answer on the way, by lower-case name."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        self.headers.update({k.lower(): v for k, v in headers.items()})
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise urllib.error.URLError(f"it leads from https to {newurl}, which anyone on the way could change")
        if req.get_method() != "HEAD":  # urllib turns a HEAD into a GET on the way
            return super().redirect_request(req, fp, code, msg, headers, newurl)
        if urllib.parse.urlsplit(newurl).netloc != urllib.parse.urlsplit(req.full_url).netloc:
            return None  # a store of files may answer GET alone, and the headers asked for are those of this answer
        return urllib.request.Request(newurl, headers=dict(req.headers), method="HEAD")


def open_url(url: str, headers: dict[str, str], method: str = "GET", timeout: float | None = None) -> tuple[Any, dict[str, str]]:
    """(the answer, to be read, its headers by lower-case name, those of redirects on the way among them).

    Raises OSError or http.client.HTTPException; `describe_failure` puts them into words.
    """
    if os.environ.get("TRITENSOR_OFFLINE", "") not in ("", "0"):
        raise urllib.error.URLError("TRITENSOR_OFFLINE is set, so nothing is asked of the network")
    redirects = Redirects()
    opener = urllib.request.build_opener(redirects, urllib.request.HTTPSHandler(context=ssl.create_default_context()))
    asked = urllib.request.Request(url, headers={"User-Agent": "tritensor", "Accept-Encoding": "identity", **headers}, method=method)
    answer: Any
    try:
        answer = opener.open(asked, timeout=TIMEOUT if timeout is None else timeout)
    except ValueError as error:  # of urllib, for an address that is none
        raise urllib.error.URLError(f"it leads to an address that is none ({error})") from None
    except urllib.error.HTTPError as error:
        if method != "HEAD" or not 300 <= error.code < 400:
            raise
        answer = error  # a file that stands elsewhere
    return answer, {**redirects.headers, **{k.lower(): v for k, v in answer.headers.items()}}


def describe_failure(error: BaseException) -> str:
    """A failure in a few words."""
    if isinstance(error, urllib.error.HTTPError):
        return f"{error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return describe_failure(error.reason) if isinstance(error.reason, BaseException) else str(error.reason)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({error.verify_message})"
    if isinstance(error, socket.gaierror):
        return f"its name is not known, or there is no network ({error.strerror})"
    if isinstance(error, TimeoutError):
        return f"no byte in {TIMEOUT:g} seconds"
    return str(error) or type(error).__name__


def is_temporary(error: BaseException) -> bool:
    """Whether another try may go better."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code in _TEMPORARY
    if isinstance(error, urllib.error.URLError):
        return isinstance(error.reason, BaseException) and is_temporary(error.reason)
    if isinstance(error, ssl.SSLCertVerificationError | socket.gaierror):  # neither will be otherwise a few seconds later
        return False
    return isinstance(error, ConnectionError | TimeoutError | http.client.HTTPException | ssl.SSLError)


def get_retry_after(error: BaseException) -> float:
    """The seconds of a server's Retry-After, 0 where it has none."""
    said = error.headers.get("Retry-After", "") if isinstance(error, urllib.error.HTTPError) and error.headers else ""
    return min(float(said), _MAX_WAIT) if said.isdigit() else 0.0  # it may be a date, too; the pauses grow by themselves
