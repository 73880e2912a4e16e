"""A server with chat completions that fails on request, run as a program of its own.

The first parts of a path say how it behaves: `/ANY/rate,500,ok/v1/chat/completions` answers the first
request with 429, the second with 500 and all later ones well. `/ANY/.../log` tells what was asked.
"""

import json
import sys
import threading
import time
from collections import defaultdict
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOCK = threading.Lock()
LOG = defaultdict(list)
ACTIVE = defaultdict(int)
MOST = defaultdict(int)
ERRORS = {
    "500": (500, "internal error", "server_error", None),
    "503": (503, "overloaded", "server_error", None),
    "context": (
        400,
        "This model's maximum context length is 512 tokens. However, your messages resulted in 900 tokens.",
        "invalid_request_error",
        "context_length_exceeded",
    ),
    "context-llama": (
        400,
        "the request exceeds the available context size, try increasing it",
        "exceed_context_size_error",
        None,
    ),
    "nomodel": (404, "The model `x` does not exist", "invalid_request_error", "model_not_found"),
    "nomodel-ollama": (404, "model 'x' not found", "api_error", None),
    "nomodel-400": (400, "x is not a valid model ID", "invalid_request_error", None),
    "policy": (400, "rejected by our content policy", "invalid_request_error", "content_policy_violation"),
    "quota": (429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota"),
    "payment": (402, "Insufficient Balance", "unknown_error", None),
    "teapot": (418, "short and stout", "tea", None),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        pass

    def do_GET(self):
        scenario = self.path.rsplit("/", 1)[0]
        if "/badkey/v1" in self.path:
            self.do_badkey({}, "")
        elif "/html404/v1" in self.path:
            self.do_html404({}, "")
        elif self.path.endswith("/v1/models"):
            names = ["gpt-large", "gpt-small", "other"]
            self.reply(200, {"object": "list", "data": [{"id": n, "object": "model"} for n in names]})
        else:
            self.reply(200, {"requests": LOG[scenario], "most": MOST[scenario]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        scenario = self.path.split("/v1", 1)[0]
        behaviours = scenario.rsplit("/", 1)[1].split(",")
        with LOCK:
            LOG[scenario].append(
                {"at": time.monotonic(), "body": body, "authorization": self.headers.get("Authorization", "")}
            )
            number = len(LOG[scenario]) - 1
            ACTIVE[scenario] += 1
            MOST[scenario] = max(MOST[scenario], ACTIVE[scenario])
        try:
            self.behave(behaviours[min(number, len(behaviours) - 1)], body)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with LOCK:
                ACTIVE[scenario] -= 1

    def behave(self, name, body):
        name, _, value = name.partition("=")
        if name in ERRORS:
            status, message, kind, code = ERRORS[name]
            self.error(status, message, kind, code)
        elif name.startswith("no-"):
            self.behave_without(name, body)
        else:
            getattr(self, "do_" + name)(body, value)

    def behave_without(self, name, body):
        """Refuse one feature of the protocol, and answer requests without it."""
        form = body.get("response_format", {}).get("type")
        refused = {
            "no-schema": form == "json_schema" and (400, "This response_format type is unavailable now"),
            "no-format": form and (400, "unknown field: response_format"),
            "no-format-silent": form and (422, "invalid request"),
            "no-format-500": form and (500, "grammar engine died"),
            "no-usage": "stream_options" in body and (400, "Unrecognized request argument: stream_options"),
            "no-temperature": "temperature" in body
            and (400, "Unsupported value: 'temperature' does not support 0.2, only the default (1)"),
            "no-limit": "max_tokens" in body
            and (400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
            "no-long": body.get("max_tokens", 0) > 1000
            and (400, "max_tokens is too large: 8192. This model supports at most 1000 completion tokens"),
            "no-room": body.get("max_tokens", 0) > 485
            and (
                400,
                "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length "
                "is 512 tokens and your request has 27 input tokens (8192 > 512 - 27).",
            ),
            "no-room-old": body.get("max_tokens", 0) > 485
            and (
                400,
                "This model's maximum context length is 512 tokens. However, you requested 8219 tokens (27 in the "
                "messages, 8192 in the completion). Please reduce the length of the messages or completion.",
            ),
            "no-room-at-all": (
                400,
                "This model's maximum context length is 512 tokens. However, you requested 8692 tokens (500 in the "
                "messages, 8192 in the completion). Please reduce the length of the messages or completion.",
            ),
            "no-stream": body.get("stream") and (400, "streaming is not supported"),
            "no-stream-silent": body.get("stream") and (-1, ""),
            "no-broken-stream": body.get("stream") and (0, ""),
            "no-system": any(m["role"] == "system" for m in body["messages"])
            and (400, "System role not supported"),
        }[name]
        if not refused:
            self.do_ok(body, "")
        elif refused[0] == 0:
            self.do_cut(body, "")
        elif refused[0] == -1:
            self.do_ok({**body, "stream": False}, "")
        else:
            self.error(*refused, "invalid_request_error", None)

    def do_rate(self, _body, value):
        headers = {}
        if value == "date":
            headers["Retry-After"] = formatdate(time.time() + 2, usegmt=True)
        elif value.endswith("ms"):
            headers["Retry-After-Ms"] = value.removesuffix("ms")
        elif value:
            headers["Retry-After"] = value
        self.error(429, "Rate limit reached", "requests", "rate_limit_exceeded", headers)

    def do_ok(self, body, value):
        if value:
            time.sleep(float(value))
        asked = body["messages"][-1]["content"].splitlines()[0]
        text = json.dumps({"echo": asked}) if "response_format" in body else f"You said: {asked}"
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        if not body.get("stream"):
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }
            self.reply(200, {**self.frame("chat.completion"), "choices": [choice], "usage": usage})
            return
        parts = [{"delta": {"content": text[i : i + 5]}} for i in range(0, len(text), 5)]
        self.stream(
            [*parts, {"delta": {}, "finish_reason": "stop"}], usage if "stream_options" in body else None
        )

    def do_echo(self, _body, _value):
        """A server that tells the key it was sent to everybody."""
        secret = self.headers.get("Authorization", "")
        self.stream([{"delta": {"content": f"int x; // {secret}"}, "finish_reason": "stop"}], None)

    def do_badkey(self, _body, _value):
        secret = self.headers.get("Authorization", "")
        self.error(401, f"Incorrect API key provided: {secret}", "invalid_request_error", "invalid_api_key")

    def do_leak(self, _body, value):
        secret = self.headers.get("Authorization", "")
        self.error(int(value), f"failed with {secret} and {secret[-12:]}", "x", secret)

    def do_leakstream(self, _body, _value):
        secret = self.headers.get("Authorization", "")
        self.events(["data: " + json.dumps({"error": {"message": f"died with {secret}", "code": secret}})])

    def do_cut(self, _body, _value):
        self.start()
        self.wfile.write(self.event({"delta": {"content": "half of it"}}))
        self.close_connection = True

    def do_cutchunk(self, _body, _value):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        data = self.event({"delta": {"content": "half of it"}})
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) + b"ff\r\nda")
        self.close_connection = True

    def do_hangup(self, _body, _value):
        self.close_connection = True

    def do_silent(self, _body, value):
        time.sleep(float(value))
        self.close_connection = True

    def do_stall(self, _body, value):
        self.start()
        self.wfile.write(self.event({"delta": {"content": "one "}}))
        time.sleep(float(value))
        self.close_connection = True

    def do_drip(self, _body, value):
        """Keep-alive lines without end: no silence, and no answer."""
        self.start()
        end = time.monotonic() + float(value)
        while time.monotonic() < end:
            self.wfile.write(b": still working\n\n")
            time.sleep(0.05)
        self.close_connection = True

    def do_slow(self, body, value):
        self.start()
        for part in ("You ", "said: ", body["messages"][-1]["content"]):
            time.sleep(float(value))
            self.wfile.write(self.event({"delta": {"content": part}}))
        self.wfile.write(self.event({"delta": {}, "finish_reason": "stop"}) + b"data: [DONE]\n\n")
        self.close_connection = True

    def do_thinking(self, _body, value):
        texts = {
            "whole": "<think>\nint a;\n</think>\n\nint b;",
            "begun": "int a;\n</think>\nint b;",
            "cut": "<think>\nint a;",
        }
        finish = "length" if value == "cut" else "stop"
        self.stream([{"delta": {"content": texts[value]}, "finish_reason": finish}], None)

    def do_parts(self, _body, _value):
        parts = [{"type": "thinking", "thinking": [{"text": "hm"}]}, {"type": "text", "text": "int b;"}]
        self.stream([{"delta": {"content": parts}, "finish_reason": "stop"}], None)

    def do_halves(self, _body, _value):
        """A character in two chunks, and half of one."""
        self.stream(
            [{"delta": {"content": c}} for c in ("a \ud83d", "\ude80 b \ud83d c")]
            + [{"finish_reason": "stop"}],
            None,
        )

    def do_html(self, _body, _value):
        self.page(200, "<html><head><title>Welcome</title></head><body>hi</body></html>")

    def do_html502(self, _body, _value):
        self.page(502, "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>")

    def do_html404(self, _body, _value):
        self.page(404, "<html><head><title>404 Not Found</title></head></html>")

    def do_html403(self, _body, _value):
        self.page(403, "<html><head><title>Blocked</title></head></html>")

    def do_badjson(self, _body, _value):
        self.events(["data: {oops", "data: [DONE]"])

    def do_notjson(self, _body, _value):
        data = b"{oops"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_strange(self, _body, _value):
        self.events(['data: {"choices": 5}', "data: [1, 2]", 'data: {"choices": [null]}', 'data: "x"'])

    def do_empty(self, _body, _value):
        self.events(["data: " + json.dumps({**self.frame(), "choices": []}), "data: [DONE]"])

    def do_blank(self, _body, _value):
        self.stream([{"delta": {"content": ""}, "finish_reason": "stop"}], None)

    def do_nothing(self, _body, _value):
        self.events(["data: [DONE]"])

    def do_refusal(self, _body, _value):
        self.stream([{"delta": {"refusal": "I will not do that."}, "finish_reason": "stop"}], None)

    def do_filter(self, _body, _value):
        self.stream([{"delta": {"content": "I be"}, "finish_reason": "content_filter"}], None)

    def do_long(self, _body, _value):
        self.stream([{"delta": {"content": "and so on"}, "finish_reason": "length"}], None)

    def do_think(self, _body, _value):
        self.stream([{"delta": {"reasoning_content": "hm " * 50}, "finish_reason": "length"}], None)

    def do_midway(self, _body, value):
        message = {"busy": "The server is overloaded", "context": "prompt is too long"}[value]
        self.events(
            [
                "data: " + json.dumps({**self.frame(), "choices": [{"index": 0, "delta": {"content": "a"}}]}),
                "data: " + json.dumps({"error": {"message": message, "type": "server_error"}}),
            ]
        )

    def do_redirect(self, _body, _value):
        self.send_response(307)
        self.send_header("Location", "http://example.invalid/v1/chat/completions")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def frame(self, kind="chat.completion.chunk"):
        return {"id": "1", "object": kind, "created": 1, "model": "served"}

    def event(self, choice):
        return (
            b"data: " + json.dumps({**self.frame(), "choices": [{"index": 0, **choice}]}).encode() + b"\n\n"
        )

    def stream(self, choices, usage):
        lines = ["data: " + json.dumps({**self.frame(), "choices": [{"index": 0, **c}]}) for c in choices]
        if usage:
            lines.append("data: " + json.dumps({**self.frame(), "choices": [], "usage": usage}))
        self.events([*lines, "data: [DONE]"])

    def events(self, lines):
        self.start()
        self.wfile.write("".join(f"{line}\n\n" for line in lines).encode())
        self.close_connection = True

    def start(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def error(self, status, message, kind, code, headers=None):
        body = {"error": {"message": message, "type": kind, "code": code, "param": None}}
        self.reply(status, body, headers)

    def page(self, status, text):
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def reply(self, status, body, headers=None):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    server.serve_forever()
