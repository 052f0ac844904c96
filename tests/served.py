"""Files from a server on this machine, in place of those that are published."""

import contextlib
import http.server
import threading


class Server:
    """Files by their names, and the paths that were asked for."""

    def __init__(self):
        self.files, self.asked = {}, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                words = [word for word in self.path.split("/") if word in outer.files]
                content = outer.files[words[-1]] if words else None
                self.send_response(404 if content is None else 200)
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@contextlib.contextmanager
def serving():
    """Give a server, which ends with the block."""
    running = Server()
    yield running
    running.server.shutdown()
    running.server.server_close()
