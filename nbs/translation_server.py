"""A translation server: requests that arrive while it works share the next search.

    python translation_server.py
    curl --data "Where is the station?" localhost:8000

Standard library but for the model. Anyone who reaches the port may ask; it listens to
this computer alone.
"""

from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Thread

from annotated_transformer import load


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        try:
            length = int(self.headers.get("Content-Length", "missing"))
            text = self.rfile.read(length).decode()
            self.server.translator.check([text], split=True)
        except ValueError as error:  # a UserError is one; it would spoil the batch
            return self.answer(400, str(error))
        translation = Future()
        self.server.waiting.put((text, translation))
        if error := translation.exception():
            return self.answer(500, str(error))
        return self.answer(200, translation.result())

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def work(translator, waiting):
    while True:
        batch = [waiting.get()]  # sleeps until somebody asks
        while not waiting.empty() and len(batch) < 64:
            batch.append(waiting.get())
        try:
            found = translator.translate([text for text, _ in batch], split=True)
        except Exception as error:  # of this batch alone
            for _, translation in batch:
                translation.set_exception(error)
            continue
        for (_, translation), text in zip(batch, found, strict=True):
            translation.set_result(text)


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # by default five may wait for a thread


def make_server(translator, port=8000):
    server = Server(("127.0.0.1", port), Handler)
    server.translator, server.waiting = translator, SimpleQueue()
    Thread(target=work, args=(translator, server.waiting), daemon=True).start()
    return server


if __name__ == "__main__":
    make_server(load(dtype="int8")).serve_forever()
