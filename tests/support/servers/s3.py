"""An S3 server for tests: moto, behind a door that checks signatures as Amazon's own library makes them.

Started with one argument, a JSON object: `directory`, `keys` (secrets by access key id), `token` (a session token that has to
come with each request, or null) and `buckets`, which are made at once. It listens on a port of its own, which it writes into
the file `port`. Requests for a key that begins with `slow-down` are refused with 503.
"""

import json
import os
import re
import sys
from urllib.parse import parse_qs, parse_qsl, quote

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
from werkzeug.test import Client

# The most objects that one answer lists, however many are asked for.
PAGE = 3


def refusal(start, status, code, message):
    body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
    start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


def signature(environ, query, secret, token):
    """The signature that a request should have, by the headers that it says are signed."""
    access, _, region, _, _ = query["X-Amz-Credential"][0].split("/")
    headers = {"host": environ["HTTP_HOST"]}
    for name in query["X-Amz-SignedHeaders"][0].split(";"):
        variable = name.upper().replace("-", "_")
        headers[name] = environ.get("HTTP_" + variable, environ.get(variable, ""))
    rest = [(name, value) for name, value in parse_qsl(environ["QUERY_STRING"], True) if name != "X-Amz-Signature"]
    line = "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in rest)
    path = environ["RAW_URI"].split("?")[0] if "RAW_URI" in environ else quote(environ["PATH_INFO"])
    request = AWSRequest(environ["REQUEST_METHOD"], f"http://{environ['HTTP_HOST']}{path}?{line}", headers)
    request.context["timestamp"] = query["X-Amz-Date"][0]
    auth = S3SigV4QueryAuth(Credentials(access, secret, token), "s3", region)
    return auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)


class Door:
    def __init__(self, settings, inside):
        self.settings, self.inside = settings, inside

    def __call__(self, environ, start):
        query = parse_qs(environ["QUERY_STRING"], True)
        access = query.get("X-Amz-Credential", [""])[0].split("/")[0]
        secret, token = self.settings["keys"].get(access), self.settings["token"]
        if secret is None:
            return refusal(start, "403 Forbidden", "InvalidAccessKeyId", "The key does not exist.")
        if query.get("X-Amz-Security-Token", [None])[0] != token:
            return refusal(start, "400 Bad Request", "InvalidToken", "The token is wrong.")
        if signature(environ, query, secret, token) != query["X-Amz-Signature"][0]:
            return refusal(start, "403 Forbidden", "SignatureDoesNotMatch", "The signature is wrong.")
        if "/slow-down" in environ["PATH_INFO"]:
            return refusal(start, "503 Slow Down", "SlowDown", "Please reduce your request rate.")
        line = re.sub(r"max-keys=\d+", lambda asked: f"max-keys={min(int(asked[0][9:]), PAGE)}", environ["QUERY_STRING"])
        return self.inside({**environ, "QUERY_STRING": line}, start)


settings = json.loads(sys.argv[1])
moto = DomainDispatcherApplication(create_backend_app)
for bucket in settings["buckets"]:
    made = Client(moto).put(f"/{bucket}", base_url="http://s3.us-east-1.amazonaws.com")
    assert made.status_code == 200, made.text
server = make_server("127.0.0.1", 0, Door(settings, moto), threaded=True)
path = os.path.join(settings["directory"], "port")
with open(path + ".new", "w", encoding="utf-8") as file:
    file.write(str(server.server_port))
os.rename(path + ".new", path)
server.serve_forever()
