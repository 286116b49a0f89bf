"""The chapter's server, asked over HTTP."""

import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from time import sleep

import pytest
from exporting import PHRASES, shipped

from annotated_transformer.check.file import import_file

SERVER = Path(__file__).resolve().parent.parent / "nbs" / "translation_server.py"


class Counted:
    """The phrasebook's translator, which notes the size of each call."""

    def __init__(self):
        self.calls, self.may_begin = [], Event()

    def check(self, texts, **how):
        shipped().check(texts, **how)

    def translate(self, texts, **how):
        self.calls.append(len(texts))
        self.may_begin.wait(30)
        return shipped().translate(texts, **how)


@pytest.fixture
def served():
    translator = Counted()
    server = import_file(SERVER).make_server(translator, 0)
    Thread(target=server.serve_forever, daemon=True).start()
    yield translator, server
    server.shutdown()
    server.server_close()


def ask(server, text):
    address = f"http://127.0.0.1:{server.server_port}"
    with urllib.request.urlopen(address, text.encode(), timeout=60) as answer:
        return answer.read().decode()


def test_one_request_has_its_translation(served):
    translator, server = served
    translator.may_begin.set()
    text = "the twenty-first of March"
    assert ask(server, text) == "der einundzwanzigste März"


def test_requests_that_wait_share_a_search_and_get_their_own_answers(served):
    translator, server = served
    with ThreadPoolExecutor(len(PHRASES)) as pool:
        answers = [pool.submit(ask, server, text) for text in PHRASES]
        while server.waiting.qsize() + sum(translator.calls) < len(PHRASES):
            assert not any(each.done() for each in answers)
            sleep(0.01)
        translator.may_begin.set()
        found = [each.result() for each in answers]
    assert found == shipped().translate(PHRASES)
    assert len(translator.calls) == 2 and sum(translator.calls) == len(PHRASES)


def test_a_text_that_cannot_be_translated_harms_no_other(served):
    translator, server = served
    translator.may_begin.set()
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(server, "twenty-" * 200)
    assert refused.value.code == 400 and "tokens" in refused.value.read().decode()
    assert ask(server, "March 3") == shipped().translate("March 3")


@pytest.mark.parametrize(
    ("headers", "body", "word"),
    [
        ({}, b"", "missing"),
        ({"Content-Length": "many"}, b"", "many"),
        ({"Content-Length": "1"}, b"\xff", "utf-8"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused(served, headers, body, word):
    _, server = served
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.putrequest("POST", "/")
    for header in headers.items():
        connection.putheader(*header)
    connection.endheaders(body)
    answer = connection.getresponse()
    assert answer.status == 400 and word in answer.read().decode()
    connection.close()


def test_an_error_in_a_search_is_answered_and_the_next_is_served(served):
    translator, server = served
    translator.may_begin.set()
    right, translator.translate = translator.translate, lambda texts, **how: 1 / 0
    with pytest.raises(urllib.error.HTTPError) as failed:
        ask(server, "March 3")
    assert failed.value.code == 500
    translator.translate = right
    assert ask(server, "March 3") == shipped().translate("March 3")
