"""A serving engine that is none: `python fake_engine.py --port 1 --model a`, with misbehaviour on demand.

It answers every chat with its model's name, and one that holds more than texts with its body. A prompt that holds
"crash" ends it. Standard library only: it starts in a tenth of a second.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = ""
    healthy_at = 0.0
    latency_s = 0.0
    crash_once = ""

    def do_GET(self) -> None:
        if self.path == "/health":
            healthy = time.monotonic() >= self.healthy_at
            self._send(200 if healthy else 503, {"status": "ok" if healthy else "loading"})
        else:
            self._send(200, {"object": "list", "data": [{"id": self.model, "owned_by": "vllm", "max_model_len": 2048}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [message["content"] for message in body["messages"] if isinstance(message.get("content"), str)]
        is_plain = len(texts) == len(body["messages"]) and not body.keys() & {"tools", "response_format"}
        prompt = "\n".join(texts)
        time.sleep(self.latency_s)
        if "crash" in prompt or (self.crash_once and not os.path.exists(self.crash_once)):
            if self.crash_once:
                open(self.crash_once, "w").close()
            print("RuntimeError: out of cards", flush=True)
            os._exit(7)
        message = {"role": "assistant", "content": self.model if is_plain else json.dumps(body)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
        self._send(200, {"model": body["model"], "choices": [choice], "usage": usage})

    def _send(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        print(format % args, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds until healthy")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds of each answer")
    parser.add_argument("--fail", action="store_true", help="ends before it is healthy")
    parser.add_argument("--crash-once", default="", help="ends at the first call ever, known by this file")
    parser.add_argument("--ignore-sigterm", action="store_true")
    parser.add_argument("--worker", action="store_true", help="starts a process in a session of its own")
    parser.add_argument("--tag", default="", help="read by tests that look for processes")
    options = parser.parse_args()
    print(f"loading {options.model}", flush=True)
    if options.fail:
        sys.exit("ValueError: no such architecture")
    if options.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.worker:
        # Without the parent's environment, as programs are seen that have overwritten theirs with a title.
        sleeping = "import sys, time; time.sleep(600)"
        subprocess.Popen([sys.executable, "-S", "-c", sleeping, options.tag], start_new_session=True, env={})
    Handler.model, Handler.latency_s = options.model, options.latency
    Handler.crash_once = options.crash_once
    Handler.healthy_at = time.monotonic() + options.delay
    server = ThreadingHTTPServer((options.host, options.port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
