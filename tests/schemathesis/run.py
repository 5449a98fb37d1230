#!/usr/bin/env python3
"""Holds a live server against its own openapi.json: no answer that it does not document, and nothing wrong accepted.

    python tests/schemathesis/run.py target/debug/switchyard

The Python is that of an environment with schemathesis in it. The server is started on a data directory of its own and
has one of everything, so that generated requests reach what they are about. Requests are generated from a fixed seed.
Methods that are not there yet (tests/golden/unimplemented.txt) are left out by name, and nothing else is.
"""

import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEED = 1
EXAMPLES = 20
# Seconds: a run takes one or two minutes; one that takes longer than this has failed.
PATIENCE = 600
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "ignored_auth",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
    "ensure_resource_availability",
]
# What may be said to a request that breaks the schema: that it does, or something that is checked before.
REFUSALS = [400, 401, 403, 404, 413, 414, 415, 431]


class Server:
    """A server in a directory, and a caller of it."""

    def __init__(self, binary, directory):
        self.url = f"http://127.0.0.1:{free_port()}"
        self.data = directory / "data"
        self.log = directory / "log"
        arguments = ["serve", "--data-dir", self.data, "--rest-listen", self.url.removeprefix("http://")]
        arguments += ["--grpc-listen", f"127.0.0.1:{free_port()}"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([binary, *arguments], stdout=log, stderr=log)

    def get_ready(self):
        for _ in range(600):
            if self.process.poll() is not None:
                sys.exit(f"the server has ended:\n{self.log.read_text()}")
            try:
                urllib.request.urlopen(f"{self.url}/readyz").close()
                self.key = (self.data / "initial-api-key").read_text().strip()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit(f"the server does not get ready:\n{self.log.read_text()}")

    def call(self, verb, path, body=None):
        """The `data` of a success."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, headers, method=verb)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["data"]

    def openapi(self):
        with urllib.request.urlopen(f"{self.url}/api/v1/openapi.json") as answer:
            return json.load(answer)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def one_of_everything(server):
    """Makes one of each noun, and gives their ids by the beginning of the paths that name them."""
    workflow = server.call("POST", "/workflows", {"name": "Orders"})
    ops = [
        {"op": "add_node", "tempId": "hook", "kind": "webhook_trigger"},
        {"op": "add_node", "tempId": "set", "kind": "set", "params": {"fields": {"a": "{{1.b * 2}}"}}, "after": "hook"},
    ]
    path = f"/workflows/{workflow['id']}"
    server.call("POST", f"{path}/ops", {"ops": ops, "expectedUpdatedAt": workflow["updatedAt"]})
    server.call("POST", f"{path}/deploy", {})
    columns = [{"name": "sku", "type": "text"}]
    credential = {"appId": "http", "connectionId": "bearer", "name": "Mine", "data": {"token": "hunter22"}}
    return {
        "workflows": workflow["id"],
        "webhooks": server.call("POST", f"{path}/webhook", {"nodeId": "1"})["webhookId"],
        "runs": server.call("POST", f"{path}/runs", {})["runId"],
        "credentials": server.call("POST", "/credentials", credential)["credentialId"],
        "variables": server.call("PUT", "/variables/NAME", {"value": "v"})["id"],
        "databases": server.call("POST", "/databases", {"name": "Products", "columns": columns})["id"],
        "structures": server.call("POST", "/structures", {"name": "Customer"})["id"],
        "functions": server.call("POST", "/functions", {"name": "answer", "code": "return 42"})["id"],
        "folders": server.call("POST", "/folders", {"name": "Shop"})["id"],
        "tags": server.call("POST", "/tags", {"name": "urgent", "color": "red"})["id"],
    }


def configuration(openapi, ids):
    """The configuration: which refusals are fine, and which ids requests name. Deletes find their own."""
    lines = ["[checks]", f"negative_data_rejection.expected-statuses = {REFUSALS}"]
    for path, item in openapi["paths"].items():
        noun = path.split("/")[3]
        parameter = re.search(r"^/api/v1/\w+/\{(\w+)\}", path)
        for verb in item:
            named_by_id = (verb, path) != ("put", "/api/v1/variables/{id}")
            if parameter and noun in ids and verb != "delete" and named_by_id:
                lines += ["[[operations]]", f"include-name = {json.dumps(f'{verb.upper()} {path}')}"]
                lines += ["[operations.parameters]", f'"path.{parameter[1]}" = {json.dumps(ids[noun])}']
    return "\n".join(lines) + "\n"


def unimplemented(openapi):
    """Ids of the operations that are not there yet."""
    listed = (ROOT / "tests/golden/unimplemented.txt").read_text().split()
    methods = [path.rsplit("/", 1)[1] for path in listed]
    operations = {operation["operationId"] for item in openapi["paths"].values() for operation in item.values()}
    return [name for name in (method[0].lower() + method[1:] for method in methods) if name in operations]


def schemathesis(server, directory):
    openapi = server.openapi()
    config = directory / "schemathesis.toml"
    config.write_text(configuration(openapi, one_of_everything(server)))
    command = [pathlib.Path(sys.executable).parent / "schemathesis", "--config-file", config, "run"]
    command += [f"{server.url}/api/v1/openapi.json", "--header", f"Authorization: Bearer {server.key}"]
    command += ["--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing,stateful"]
    command += ["--seed", str(SEED), "--max-examples", str(EXAMPLES), "--generation-database", "none"]
    command += ["--continue-on-failure", "--warnings", "off", "--no-color"]
    for name in unimplemented(openapi):
        print(f"not there yet, left out: {name}", flush=True)
        command += ["--exclude-operation-id", name]
    return subprocess.run(command, cwd=directory, timeout=PATIENCE, check=False).returncode


def main():
    with tempfile.TemporaryDirectory(prefix="switchyard-schemathesis-") as name:
        directory = pathlib.Path(name)
        server = Server(pathlib.Path(sys.argv[1]).resolve(), directory)
        try:
            server.get_ready()
            failed = schemathesis(server, directory)
        except subprocess.TimeoutExpired:
            failed = f"not done after {PATIENCE} s"
        finally:
            server.process.terminate()
            server.process.wait()
        if failed:
            # A failure's cause is in the server's log, if it was the server's.
            print("".join(server.log.read_text().splitlines(keepends=True)[-40:]))
        sys.exit(failed)


if __name__ == "__main__":
    main()
